import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AccessGateway, EXEC_HEAD, EXEC_PATH } from "../../support/access-gateway.ts";
import { eventually } from "../../support/eventually.ts";
import { FLAG, FRAME, type FrameClient, openFrameClient } from "../../support/frame-peer.ts";
import { frameOf, headerBlockOf } from "../../support/http2-frames.ts";
import type { KubeletSession } from "../../support/scripted-kubelet.ts";

const HEAD = { ...EXEC_HEAD, ":path": `${EXEC_PATH}&stdin=true` };

let gateway: AccessGateway;
/** What each session's command has read. */
const inputs = new Map<KubeletSession, string>();

beforeAll(async () => {
  gateway = await AccessGateway.start(
    (folder) => {
      writeFileSync(path.join(folder, "tokens.csv"), "t,ann,1\n");
      return { authentication: { tokenAuthFile: "tokens.csv" }, authorization: { mode: ["AlwaysAllow"] } };
    },
    {
      onData: (name, part, _fin, session) => {
        if (name === "stdin") inputs.set(session, (inputs.get(session) ?? "") + Buffer.from(part).toString());
      },
    },
  );
});
afterAll(() => gateway.stop());

/** A connection with an exec on each of the streams 1 and 3, and their sessions at the node. */
async function twoSessions(): Promise<[FrameClient, KubeletSession, KubeletSession]> {
  const client = await openFrameClient(Number(gateway.authority.split(":")[1]), true);
  const sessions: KubeletSession[] = [];
  for (const id of [1, 3]) {
    const before = gateway.kubelet.sessions.length;
    client.send(FRAME.headers, FLAG.endHeaders, id, headerBlockOf(HEAD));
    await eventually("the session", () => client.has(FRAME.headers, id));
    sessions.push(gateway.kubelet.sessions[before] as KubeletSession);
  }
  return [client, sessions[0] as KubeletSession, sessions[1] as KubeletSession];
}

const isOver = ({ socket }: KubeletSession): boolean => socket.destroyed || socket.readableEnded;

interface Ended {
  readonly cause: string;
  readonly reason: string;
}

/** How the sessions ended whose lines are not among the first `from` ones. */
const endsSince = (from: number): Ended[] =>
  gateway.logLines
    .slice(from)
    .map((line) => JSON.parse(line) as Ended & { msg: string })
    .filter(({ msg }) => msg === "session ended")
    .map(({ cause, reason }) => ({ cause, reason }));

const noneIsLeft = async (): Promise<boolean> =>
  ((await gateway.readMetrics()).get('sluice_streaming_active_sessions{subresource="exec"}') ?? 0) === 0;

const MASK = [0x80, 0, 0, 0, 0];
/** Stream 1's bytes, the flags of their DATA, and what the log has for its session. */
const BAD: readonly (readonly [what: string, bytes: number[], reason: string])[] = [
  ["a reserved bit", [0xc2, ...MASK], "a reserved bit is set"],
  ["no mask", [0x82, 2, 0, 65], "a client's frame is not masked"],
  ["opcode 3", [0x83, ...MASK], "opcode 3 is reserved"],
  ["a control frame of 126 bytes", [0x89, 0xfe, 0, 126], "a control frame is longer than 125 bytes"],
  ["a fragmented control frame", [0x09, ...MASK], "a control frame is fragmented"],
  [
    "a length of 2^63",
    [0x82, 0xff, 0x80, ...new Array(7).fill(0)],
    "a frame announces more than 33554432 bytes",
  ],
  ["a continuation of nothing", [0x80, ...MASK], "a continuation frame without a message to continue"],
];

describe("of two exec sessions on one connection of HTTP/2, the other goes on", () => {
  /** Its command still gets input, and it ends with its client. */
  const otherGoesOn = async (client: FrameClient, other: KubeletSession): Promise<void> => {
    expect(isOver(other)).toBe(false);
    client.send(FRAME.data, 0, 3, Buffer.from([0x82, 0x83, 0, 0, 0, 0, 0, 104, 105]));
    await eventually("its input", () => inputs.get(other) === "hi");
    client.raw.destroy();
    await eventually("its end", () => isOver(other));
    await eventually("the end of all sessions", noneIsLeft);
  };

  it.each(BAD)("behind a frame with %s", async (_what, bytes, reason) => {
    const [client, session, other] = await twoSessions();
    const from = gateway.logLines.length;
    client.send(FRAME.data, 0, 1, Buffer.from(bytes));
    await eventually("its end at the node", () => isOver(session));
    await eventually("the end of its stream", () => client.endsOf(1).length > 0);
    // Close with its code and reason, then the end, as on a connection of its own.
    expect(client.endsOf(1)).toEqual(["END_STREAM"]);
    expect(client.bodyOf(1).toString("latin1")).toContain(reason);
    expect(endsSince(from)).toEqual([
      { cause: "protocol-error", reason: `the client sent malformed WebSocket: ${reason}` },
    ]);
    await otherGoesOn(client, other);
  });

  it.each([
    ["half a frame and END_STREAM", [0x82, 0x85, 0, 0, 0, 0, 0, 65], FLAG.endStream, ["RST_STREAM 8"]],
    ["half a header and END_STREAM", [0x82], FLAG.endStream, ["RST_STREAM 8"]],
    ["half a frame and RST_STREAM", [0x82, 0x85, 0, 0, 0, 0, 0, 65], 0, []],
  ])("behind %s", async (_what, bytes, flags, ends) => {
    const [client, session, other] = await twoSessions();
    const from = gateway.logLines.length;
    client.send(FRAME.data, flags, 1, Buffer.from(bytes));
    if (flags === 0) client.reset(1, 8);
    await eventually("its end at the node", () => isOver(session));
    await eventually("the end of its stream", () => client.endsOf(1).length >= ends.length);
    expect(client.endsOf(1)).toEqual(ends);
    expect(endsSince(from)).toEqual([
      { cause: "client-gone", reason: "the client ended the connection without a Close frame" },
    ]);
    await otherGoesOn(client, other);
  });
});

describe("frames that break the rules of HTTP/2 end every session of their connection", () => {
  it.each([
    ["a PING of seven bytes", frameOf(FRAME.ping, 0, 0, Buffer.alloc(7))],
    ["SETTINGS of five bytes", frameOf(FRAME.settings, 0, 0, Buffer.alloc(5))],
    ["RST_STREAM of three bytes", frameOf(FRAME.reset, 0, 1, Buffer.alloc(3))],
    ["DATA of more padding than bytes", frameOf(FRAME.data, 8, 1, Buffer.from([200, 1]))],
    ["a window beyond 2^31", frameOf(FRAME.windowUpdate, 0, 1, Buffer.from([0x7f, 255, 255, 255]))],
  ])("and the log does not say that the client ended them: %s", async (_what, frame) => {
    const [client, session, other] = await twoSessions();
    const from = gateway.logLines.length;
    client.socket.write(frame);
    await eventually("the end of the connection", () => client.isOver);
    await eventually("the ends at the node", () => isOver(session) && isOver(other));
    await eventually("the end of all sessions", noneIsLeft);
    const ends = endsSince(from);
    expect(ends).toHaveLength(2);
    for (const { cause, reason } of ends) {
      expect(cause).toBe("client-gone");
      // A stream whose frame was bad may end before the rest of its connection.
      expect(reason).toMatch(/^the client's HTTP\/2 (connection|stream) failed: ./);
    }
  });
});
