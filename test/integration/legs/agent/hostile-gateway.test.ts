import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { Socket } from "node:net";
import { Readable, Writable } from "node:stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { execPath, SpdyExecutor, WebSocketExecutor } from "../../../../packages/client/src/index.ts";
import {
  MAX_HEADER_BYTES,
  writeAck,
  writeDataHeader,
  writeFin,
} from "../../../../protocols/resume/frames.ts";
import {
  encodeAgreement,
  encodeResumed,
  RESUME_HEADER,
  RESUME_PROTOCOL,
} from "../../../../protocols/resume/index.ts";
import { eventually } from "../../../support/eventually.ts";
import { closeServer, listen } from "../../../support/http/loopback.ts";
import { TestAgent } from "../../../support/test-agent.ts";

const V5 = "v5.channel.k8s.io";
const acceptOf = (key = ""): string =>
  createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
const IDLE_MS = 1_500;
/** Of a flood, beyond what the buffers of both ends' systems take of one that nobody reads. */
const ENOUGH_BYTES = 1024 * 1024;
/** A busy machine's; a flood of one connection alone must not take a turn of that length. */
const SLOW_ECHO_MS = 5_000;

type Act = (socket: Socket) => void;

type Part = number | string | Uint8Array | readonly number[];
const bytes = (...parts: readonly Part[]): Buffer =>
  Buffer.concat(
    parts.map((part) => (typeof part === "number" ? Buffer.of(part) : Buffer.from(part as string))),
  );
function message(...parts: readonly Part[]): Buffer {
  const payload = bytes(...parts);
  const head =
    payload.length < 126 ? [0x82, payload.length] : [0x82, 126, payload.length >> 8, payload.length & 255];
  return Buffer.concat([Buffer.from(head), payload]);
}
const writes =
  (...parts: readonly Part[]): Act =>
  (socket) =>
    void socket.write(bytes(...parts));
const flood =
  (part: Buffer): Act =>
  (socket) => {
    const chunk = Buffer.concat(Array(Math.ceil(65_536 / part.length)).fill(part));
    const more = (): void => {
      if (!socket.destroyed && socket.write(chunk)) setImmediate(more);
    };
    socket.on("drain", more);
    more();
  };

function frame(
  write: (target: Uint8Array, ...numbers: [number, number, number]) => number,
  offset: number,
  received = 0,
  free = 65_536,
): Buffer {
  const header = new Uint8Array(MAX_HEADER_BYTES);
  return Buffer.from(header.subarray(0, write(header, offset, received, free)));
}
const ack = (received: number, free = 65_536): Buffer =>
  frame((target, ...[one, , two]) => writeAck(target, one, two), received, 0, free);
/** Faults of a session over WebSocket v5, and what its client is told. */
const PLAIN: Record<string, readonly [Act, RegExp]> = {
  "a frame of 2^63 bytes": [
    writes([0x82, 127, ...Array(8).fill(255)]),
    /announces more than|idle for too long/,
  ],
  "a masked frame": [writes([0x82, 0x82, 1, 2, 3, 4, 0, 65]), /frame is masked/],
  "a reserved opcode": [writes([0x83, 2, 1, 65]), /opcode 3 is reserved/],
  "a message within another": [writes([0x02, 2, 1, 65, 0x82, 2, 1, 65]), /before the last one ended/],
  "a PING of 126 bytes": [writes([0x89, 126, 0, 126], Buffer.alloc(126)), /longer than 125 bytes/],
  "half a PING": [writes([0x09, 0]), /control frame is fragmented/],
  text: [writes([0x81, 2, 1, 65]), /a text message|unexpected message type: 1/],
  "an unknown channel": [writes(message(9, "x")), /idle for too long/],
  "input for itself": [writes(message(0, "x")), /idle for too long/],
  "the end of an unknown channel": [writes(message(255, 9)), /idle for too long/],
  "output behind its end": [writes(message(255, 1), message(1, "x")), /idle for too long/],
  "a Status that is none": [writes(message(3, "null"), [0x88, 0]), /not a Status|Status/],
  "a Status nested without end": [writes(message(3, "[".repeat(60_000)), [0x88, 0]), /Status/],
  "a Status without end": [
    flood(message(3, " ".repeat(60_000))),
    /idle for too long|status that is too large/,
  ],
  HTTP: [writes("HTTP/1.1 200 OK\r\n\r\n"), /a reserved bit is set/],
  "a Close of one byte": [writes([0x88, 1, 3]), /a body of one byte|without a status/],
  "its end in a frame": [(socket) => void socket.end(bytes([0x82, 100, 1])), /without a Close frame|1006/],
  "a reset": [(socket) => void socket.resetAndDestroy(), /ECONNRESET|without a status/],
  "half a frame, and then nothing": [writes([0x82, 100, 1]), /idle for too long|without a Close frame/],
  "empty messages without end": [flood(bytes([0x82, 0])), /empty message|stream id: EOF/],
};
/** Faults that end no session: its client leaves. */
const LEFT: Record<string, Act> = {
  "PINGs without end, and it reads nothing": (socket) => {
    socket.pause();
    flood(bytes([0x89, 125], Buffer.alloc(125)))(socket);
  },
  "empty output without end": flood(message(1)),
};
const RESUMED: Record<string, readonly [Act, RegExp]> = {
  "a gap": [writes(message(frame(writeDataHeader, 100), "x")), /bytes are missing before/],
  "an offset of 2^64": [writes(message(1, Buffer.alloc(20, 255), "x")), /an offset is beyond 2\^53/],
  "more than its window": [
    writes(
      ...[0, 1, 2, 3].map((part) => message(frame(writeDataHeader, part * 60_000), Buffer.alloc(60_000))),
    ),
    /more came than there is room for|without a message/,
  ],
  "an acknowledgement of what was never sent": [writes(message(ack(1_000_000))), /what was never sent/],
  "an unknown frame": [writes(message(77, "xyz")), /no frame type 77/],
  "an empty frame": [writes(message()), /a frame is empty/],
  "data behind its end": [writes(message(frame(writeFin, 0)), message(frame(writeDataHeader, 1), "x")), /./],
};
const LEFT_RESUMED: Record<string, Act> = {
  "acknowledgements without end": flood(message(ack(0))),
};

interface Fault {
  readonly act: Act;
  readonly told?: RegExp;
  readonly isResumable: boolean;
  readonly sockets: Socket[];
}
const faultsOf = (table: Record<string, Act | readonly [Act, RegExp]>, isResumable: boolean) =>
  Object.entries(table).map(([name, row]): readonly [string, Fault] => {
    const [act, told] = typeof row === "function" ? [row] : row;
    return [name, { act, isResumable, sockets: [], ...(told && { told }) }];
  });

let server: Server;
let agent: TestAgent;
let faults: Map<string, Fault>;
const opened: Socket[] = [];

function accept(request: IncomingMessage, socket: Socket, { isResumable, act, sockets }: Fault): void {
  sockets.push(socket);
  socket.resume();
  const { "sec-websocket-key": key, "sec-websocket-protocol": protocols = "" } = request.headers;
  const agreement = {
    protocol: V5,
    session: "s".repeat(22),
    key: "k".repeat(43),
    windowBytes: 65_536,
    windowSeconds: 60,
  };
  const resume = protocols.includes(V5) ? encodeAgreement(agreement) : encodeResumed(0);
  const lines = isResumable
    ? [`Sec-WebSocket-Protocol: ${RESUME_PROTOCOL}`, `${RESUME_HEADER}: ${resume}`]
    : [`Sec-WebSocket-Protocol: ${V5}`];
  const head = [
    "HTTP/1.1 101 Switching Protocols",
    "Connection: Upgrade",
    "Upgrade: websocket",
    `Sec-WebSocket-Accept: ${acceptOf(key)}`,
    ...lines,
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  act(socket);
}

function echo(socket: WebSocket): void {
  socket.send(Buffer.of(1));
  socket.on("message", (data: Buffer) => {
    if (data[0] === 0) socket.send(Buffer.concat([Buffer.of(1), data.subarray(1)]));
    if (data[0] !== 255) return;
    socket.send(bytes(3, '{"metadata":{},"status":"Success"}'));
    socket.close(1000);
  });
}

beforeAll(async () => {
  const webSockets = new WebSocketServer({
    noServer: true,
    handleProtocols: () => V5,
    perMessageDeflate: false,
  });
  server = createServer();
  server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    opened.push(socket.on("error", () => {}));
    const [, pod = ""] = /\/pods\/([^/]+)\//.exec(request.url ?? "") ?? [];
    const fault = faults.get(pod);
    if (fault === undefined) webSockets.handleUpgrade(request, socket, head, echo);
    else accept(request, socket, fault);
  });
  const url = `http://127.0.0.1:${await listen(server)}`;
  agent = await TestAgent.start({ server: url, timeouts: { idleMs: IDLE_MS, lingerMaxMs: 1_000 } });
});
afterAll(async () => {
  await agent.stop();
  await closeServer(server, opened);
});

const CLIENTS = { SPDY: SpdyExecutor, "WebSocket v5": WebSocketExecutor };
type Client = keyof typeof CLIENTS;

function start(client: Client, pod: string) {
  const executor = new CLIENTS[client](
    agent.target(),
    execPath({ namespace: "default", pod, container: "main" }, ["cat"]),
  );
  const stdin = new Readable({ read() {} });
  const taken: Buffer[] = [];
  const stdout = new Writable({
    write: (chunk, _encoding, done) => {
      taken.push(chunk);
      done();
    },
  });
  const leave = new AbortController();
  const ended = executor.stream({ stdin, stdout, signal: leave.signal }).then(
    ({ exitCode }) => `exit ${exitCode}`,
    (error: Error) => error.message,
  );
  return { stdin, ended, leave, output: () => Buffer.concat(taken).toString() };
}

/** A session that goes on beside the others, and how long its slowest echo took. */
async function honest() {
  const session = start("WebSocket v5", "web");
  let sent = "";
  let slowestMs = 0;
  let isOver = false;
  const running = (async () => {
    while (!isOver) {
      session.stdin.push("x");
      sent += "x";
      const sinceMs = performance.now();
      await eventually("an echo", () => session.output() === sent);
      slowestMs = Math.max(slowestMs, performance.now() - sinceMs);
    }
    session.stdin.push(null);
    expect(await session.ended).toBe("exit 0");
    return slowestMs;
  })();
  return {
    stop: async () => {
      isOver = true;
      return await running;
    },
  };
}

describe.each(
  Object.keys(CLIENTS) as Client[],
)("a gateway that breaks the protocol harms no other session, of a client of %s", (client) => {
  it.each([
    ["", faultsOf(PLAIN, false), faultsOf(LEFT, false)],
    [" that it made resumable", faultsOf(RESUMED, true), faultsOf(LEFT_RESUMED, true)],
  ])(
    "in a session%s",
    async (_what, rows, left) => {
      const named = [...rows, ...left].map(([name, fault], index) => ({ name, fault, pod: `evil-${index}` }));
      faults = new Map(named.map(({ pod, fault }) => [pod, fault]));
      agent.told.splice(0);
      const other = await honest();
      const problems = await Promise.all(
        named.map(async ({ name, fault: { told, sockets }, pod }) => {
          const session = start(client, pod);
          if (told === undefined) {
            await eventually(name, () => sockets.some(({ bytesWritten }) => bytesWritten > ENOUGH_BYTES));
            session.leave.abort();
          }
          const end = await session.ended;
          return (told ?? /./).test(end) ? [] : [`${name}: ${end.slice(0, 200)}`];
        }),
      );
      expect(problems.flat()).toEqual([]);
      expect(await other.stop()).toBeLessThan(SLOW_ECHO_MS);
      await eventually("the end of all sessions", async () =>
        (await agent.metric("sluice_streaming_active_sessions")).every((line) => line.endsWith(" 0")),
      );
      const ends = () => agent.told.filter((line) => /"session":.*"session ended"/.test(line));
      await eventually("a line for each end", () => ends().length > named.length);
      await eventually("the end of all connections", () =>
        named.every(({ fault }) => fault.sockets.every((socket) => socket.destroyed || socket.readableEnded)),
      );
    },
    60_000,
  );
  it("resumes with pauses where each resumption is cut at once", async () => {
    const fault: Fault = { act: (socket) => void socket.end(), isResumable: true, sockets: [] };
    faults = new Map([["evil", fault]]);
    const sinceMs = performance.now();
    const session = start(client, "evil");
    await eventually("resumptions", () => fault.sockets.length >= 6);
    // The first comes at once, and the pauses before the others are 100 to 800 ms, or half of it.
    expect(performance.now() - sinceMs).toBeGreaterThan(700);
    session.leave.abort();
    await session.ended;
  });
});
