import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { proofOf } from "../../../packages/client/src/sessions/resuming-client.ts";
import { MAX_HEADER_BYTES, writeAck, writeDataHeader } from "../../../protocols/resume/frames.ts";
import { type Agreement, RESUME_HEADER, RESUME_PROTOCOL } from "../../../protocols/resume/index.ts";
import { eventually } from "../../support/eventually.ts";
import { TESTER_TOKEN } from "../../support/gateway-files.ts";
import { ResumableGateway } from "../../support/resumable-gateway.ts";
import { EXEC_PATH, openResumable, refusalOf, resumeOnce } from "../../support/resumption-client.ts";

let gateway: ResumableGateway;
beforeEach(async () => {
  gateway = await ResumableGateway.start();
});
afterEach(() => gateway.stop());

/** A client's message: masked by nothing but zeros. */
function message(...parts: readonly Uint8Array[]): Buffer {
  const payload = Buffer.concat(parts);
  const header =
    payload.length < 126
      ? [0x82, 0x80 | payload.length]
      : [0x82, 0xfe, payload.length >> 8, payload.length & 255];
  return Buffer.concat([Buffer.from([...header, 0, 0, 0, 0]), payload]);
}

/** Bytes from `offset` of the session's own WebSocket. */
function data(offset: number, bytes: Uint8Array): Buffer {
  const header = new Uint8Array(MAX_HEADER_BYTES);
  return message(header.subarray(0, writeDataHeader(header, offset, 0, 1024 * 1024)), bytes);
}

function ack(received: number, free = 1024 * 1024): Buffer {
  const header = new Uint8Array(MAX_HEADER_BYTES);
  return message(header.subarray(0, writeAck(header, received, free)));
}

const stdin = (text: string): Buffer => message(Buffer.from([0]), Buffer.from(text));

/** All that comes over a connection. */
function received(socket: {
  on(event: "data", listener: (chunk: Buffer) => void): unknown;
  resume(): unknown;
}) {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.resume();
  return () => Buffer.concat(chunks).toString("latin1");
}

const countOf = (text: string, part: string): number => text.split(part).length - 1;

/** A resumption with header lines as they are; its status line. */
async function rawResumption(lines: readonly string[]): Promise<string> {
  const socket: Socket = connect(gateway.port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  const text = received(socket);
  const head = [
    `GET ${EXEC_PATH} HTTP/1.1`,
    "Host: a",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    `Sec-WebSocket-Protocol: ${RESUME_PROTOCOL}`,
    `Authorization: Bearer ${TESTER_TOKEN}`,
    ...lines,
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  await eventually("an answer", () => text().includes("\r\n\r\n"));
  socket.destroy();
  return text().split("\r\n", 1)[0] as string;
}

/** Header values of which none is a resumption. `proof` is right for attempt 1 and received 0. */
const GARBAGE: Readonly<Record<string, (session: string, proof: string) => string>> = {
  "a negative offset": (session, proof) => `v1; session=${session}; attempt=1; received=-1; proof=${proof}`,
  "an offset that is no number": (session, proof) =>
    `v1; session=${session}; attempt=1; received=NaN; proof=${proof}`,
  "an offset of 2^53": (session, proof) =>
    `v1; session=${session}; attempt=1; received=9007199254740992; proof=${proof}`,
  "an offset in hexadecimal": (session, proof) =>
    `v1; session=${session}; attempt=1; received=0x0; proof=${proof}`,
  "an offset with a fraction": (session, proof) =>
    `v1; session=${session}; attempt=1; received=0.0; proof=${proof}`,
  "an attempt of 2^64": (session, proof) =>
    `v1; session=${session}; attempt=18446744073709551616; received=0; proof=${proof}`,
  "a parameter twice": (session, proof) =>
    `v1; session=${session}; session=${session}; attempt=1; received=0; proof=${proof}`,
  "another version": (session, proof) => `v2; session=${session}; attempt=1; received=0; proof=${proof}`,
  "a long session": (session, proof) =>
    `v1; session=${session.repeat(30)}; attempt=1; received=0; proof=${proof}`,
  "a short proof": (session, proof) =>
    `v1; session=${session}; attempt=1; received=0; proof=${proof.slice(1)}`,
  nothing: () => "",
};

describe("a session whose client is there", () => {
  /** An echoing session, its agreement, and what its own connection gets. */
  async function echoing() {
    const { agreement, connection } = await openResumable(gateway.target(), ["cat"]);
    const text = received(connection.socket);
    const first = stdin("first");
    connection.socket.write(data(0, first));
    await eventually("its echo", () => countOf(text(), "first") === 1);
    const goesOn = async (): Promise<void> => {
      connection.socket.write(data(first.length, stdin("second")));
      await eventually("its echo", () => countOf(text(), "second") === 1);
      expect([countOf(text(), "first"), countOf(text(), "second")]).toEqual([1, 1]);
      connection.socket.destroy();
    };
    return { agreement, connection, text, next: first.length, goesOn };
  }

  it("is unharmed by headers that are no resumption, and none of them opens another", async () => {
    const { agreement, goesOn } = await echoing();
    const { session, key } = agreement;
    const proof = proofOf(key, { session, attempt: 1, received: 0 });
    for (const [what, headerOf] of Object.entries(GARBAGE)) {
      const status = await rawResumption([`${RESUME_HEADER}: ${headerOf(session, proof)}`]);
      expect(status, what).toMatch(/^HTTP\/1\.1 4\d\d /);
    }
    expect(gateway.sessions()).toHaveLength(1);
    await goesOn();
  });

  it("refuses offsets beyond what it sent, and those before what was acknowledged", async () => {
    const { agreement, connection, text, goesOn } = await echoing();
    const refused = (attempt: number, offset: number) =>
      refusalOf(resumeOnce(gateway.target(), agreement, { attempt, received: offset }));
    const gap = "409  the session cannot be resumed: bytes are missing";
    expect(await refused(1, Number.MAX_SAFE_INTEGER)).toBe(gap);
    expect(await refused(2, text().length + 100)).toBe(gap);
    connection.socket.write(ack(4));
    // It has been read once this has been echoed.
    await goesOn();
    expect(await refused(3, 3)).toBe(gap);
    expect(gateway.sessions()).toHaveLength(1);
  });

  it("goes to one of many that come at once, and delivers nothing twice", async () => {
    const { agreement, connection, next } = await echoing();
    const old = new Promise((resolve) => connection.socket.once("end", resolve));
    // The old connection still sends what the new ones know nothing of.
    for (let index = 0; index < 50; index++) connection.socket.write(data(next, stdin("late")));
    const attempts = await Promise.allSettled(
      Array.from({ length: 20 }, (_, index) =>
        resumeOnce(gateway.target(), agreement as Agreement, { attempt: 1 + Math.floor(index / 2) }),
      ),
    );
    const won = attempts.flatMap((attempt) => (attempt.status === "fulfilled" ? [attempt.value] : []));
    expect(won.length).toBeGreaterThan(0);
    expect(won.length).toBeLessThanOrEqual(10);
    await old;
    const texts = won.map(({ socket }) => received(socket));
    const isOpen = () => won.filter(({ socket }) => !socket.destroyed && !socket.readableEnded);
    await eventually("one that is left", () => isOpen().length === 1);
    const last = won.indexOf(isOpen()[0] as (typeof won)[number]);
    const all = () => `${texts[last]?.()}${won[last]?.head.toString("latin1")}`;
    await eventually("all that was sent before", () => countOf(all(), "first") === 1);
    // However often it was sent, and over whatever connections, it is input once at most.
    won[last]?.socket.write(data(next, stdin("late")));
    won[last]?.socket.write(data(next + stdin("late").length, stdin("last")));
    await eventually("its echo", () => all().includes("last"));
    expect(["first", "late", "last"].map((part) => countOf(all(), part))).toEqual([1, 1, 1]);
    expect(gateway.sessions()).toHaveLength(1);
    won[last]?.socket.destroy();
  });
});
