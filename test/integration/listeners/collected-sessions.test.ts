import { spawn } from "node:child_process";
import { once } from "node:events";
import { pathToFileURL } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { compiledSources } from "../../support/built-program.ts";
import { eventually } from "../../support/eventually.ts";
import { FLAG, FRAME, type FrameClient, openFrameClient } from "../../support/frame-peer.ts";
import { headerBlockOf } from "../../support/http2-frames.ts";
import { collect } from "../../support/kubectl.ts";

/** Reads bodies, answers none, and collects garbage when a connection or its session closes. */
const PROGRAM = `
import { createServer } from "node:net";
const [folder] = process.argv.slice(1);
const { Http2Connections } = await import(folder + "/listeners/http2-connections.js");
const { defaultConfiguration } = await import(folder + "/config/configuration.js");
const collect = () => {
  gc();
  process.nextTick(gc);
};
const onRequest = ({ stream }) => {
  stream.session.once("close", collect);
  stream.resume().respond({ ":status": 200 });
};
const times = { takingMs: 60_000, headMs: 60_000 };
const handlers = { onRequest, onConnect: onRequest };
const connections = new Http2Connections(defaultConfiguration().limits, handlers, times);
const server = createServer({ allowHalfOpen: true }, (socket) => {
  socket.on("error", () => {}).once("close", collect);
  connections.accept(socket);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
`;

const POST = headerBlockOf({ ":method": "POST", ":scheme": "http", ":path": "/", ":authority": "a" });
const FIELD = headerBlockOf({ a: "b".repeat(100) });

const HALVES: Record<string, (client: FrameClient) => void> = {
  "its trailers": (client) => client.send(FRAME.headers, FLAG.endStream, 1, FIELD),
  "another head": (client) => client.send(FRAME.headers, 0, 3, Buffer.concat([POST, FIELD])),
};

const ENDS: Record<string, (client: FrameClient) => void> = {
  "breaks the protocol": (client) => client.send(FRAME.ping, 0, 0, Buffer.alloc(7)),
  leaves: ({ raw }) => void raw.end(),
  "is reset": ({ raw }) => void raw.resetAndDestroy(),
};

interface Server {
  readonly port: number;
  /** Resolves with its output once the program has ended by itself. */
  ended(): string | undefined;
}

async function startServer(): Promise<Server> {
  const args = ["--expose-gc", "--input-type=module", "-e", PROGRAM, pathToFileURL(compiledSources()).href];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill());
  const printed = collect(child.stderr);
  const [port] = await once(child.stdout, "data");
  const isOver = () => child.exitCode !== null || child.signalCode !== null;
  return { port: Number(String(port)), ended: () => (isOver() ? printed() : undefined) };
}

async function openClient({ port, ended }: Server): Promise<FrameClient> {
  const client = await openFrameClient(port);
  client.send(FRAME.headers, FLAG.endHeaders, 1, POST);
  await eventually("the answer", () => client.has(FRAME.headers, 1) || ended() !== undefined);
  return client;
}

// Node.js 20 aborts without `keepBehindItsStreams`: "Assertion failed: (current_nghttp2_memory_) == (0)".
it("a collection next to the end of a session within a header block ends nothing else", async () => {
  const server = await startServer();
  for (const [half, sendHalf] of Object.entries(HALVES)) {
    for (const [ending, endIn] of Object.entries(ENDS)) {
      const client = await openClient(server);
      sendHalf(client);
      endIn(client);
      await eventually("its end", () => client.isOver || client.raw.closed);
      const isOver = () => eventually("its report", () => server.ended() !== undefined);
      await openClient(server).catch(isOver);
      expect(server.ended(), `half of ${half}, and it ${ending}`).toBeUndefined();
    }
  }
});
