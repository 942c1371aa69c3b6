import { createHash } from "node:crypto";
import { once } from "node:events";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { WebSocket } from "ws";
import { outcomeOf } from "../../protocols/remotecommand/index.ts";
import { SpdySession } from "../../protocols/spdy/index.ts";

/**
 * What a client does while it reads. The first two make a server that closes too early lose output.
 */
export type ClientBehaviour = "pings" | "sends input" | "silent";

export interface PacedCommand {
  /** `http://host:port` of the gateway. */
  readonly gatewayUrl: string;
  /** If empty, no Authorization header is sent. */
  readonly token: string;
  readonly pod: string;
  readonly command: readonly string[];
  readonly transport: "websocket" | "spdy";
  readonly behaviour: ClientBehaviour;
  readonly bytesPerSecond: number;
}

/** What arrived. No result is an error here, because the test compares it. */
export interface PacedResult {
  readonly bytes: number;
  readonly sha256: string;
  /** kubectl's exit code; undefined if no status arrived. */
  readonly exitCode: number | undefined;
  /** How the connection ended. */
  readonly ending: string;
}

const PING_INTERVAL_MS = 100;
const INPUT_INTERVAL_MS = 20;
const INPUT = Buffer.alloc(1024, "i");
/**
 * Input is sent after this much output: by a client that types, or resizes its terminal, while it
 * reads.
 */
const INPUT_AFTER_BYTES = 1024 * 1024;
/**
 * A client that is ahead of its pace by less than this continues to read, because timers are no
 * finer.
 */
const SHORTEST_PAUSE_MS = 10;

/**
 * Runs a command through the gateway with a client that reads output at a fixed pace. Returns what
 * arrived.
 */
export function runPacedCommand(options: PacedCommand): Promise<PacedResult> {
  return options.transport === "websocket" ? overWebSocket(options) : overSpdy(options);
}

/**
 * Everything that a client collects from a command. The output is a digest, so that many clients
 * can run at once.
 */
class Collector {
  readonly #hash = createHash("sha256");
  readonly #status: Uint8Array[] = [];
  readonly #bytesPerSecond: number;
  readonly #startedMs = performance.now();
  #bytes = 0;

  constructor(bytesPerSecond: number) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  get isReading(): boolean {
    return this.#bytes >= INPUT_AFTER_BYTES;
  }

  /** Returns how many milliseconds the client must not read. */
  output(part: Uint8Array): number {
    this.#hash.update(part);
    this.#bytes += part.byteLength;
    const aheadMs = (this.#bytes / this.#bytesPerSecond) * 1_000 - (performance.now() - this.#startedMs);
    return aheadMs >= SHORTEST_PAUSE_MS ? aheadMs : 0;
  }

  status(part: Uint8Array): void {
    this.#status.push(Uint8Array.from(part));
  }

  result(ending: string): PacedResult {
    const outcome = outcomeOf("v4.channel.k8s.io", Buffer.concat(this.#status));
    const exitCode = outcome.type === "success" ? 0 : outcome.type === "exit" ? outcome.code : undefined;
    return { bytes: this.#bytes, sha256: this.#hash.digest("hex"), exitCode, ending };
  }
}

async function overWebSocket(options: PacedCommand): Promise<PacedResult> {
  const socket = new WebSocket(urlOf(options).replace(/^http/, "ws"), "v5.channel.k8s.io", {
    perMessageDeflate: false,
    rejectUnauthorized: false,
    headers: headersOf(options),
  });
  const collector = new Collector(options.bytesPerSecond);
  let error = "";
  socket.on("error", ({ message }) => {
    error = message;
  });
  socket.on("message", (data: Buffer) => {
    if (data[0] === 3) collector.status(data.subarray(1));
    if (data[0] !== 1) return;
    const pauseMs = collector.output(data.subarray(1));
    if (pauseMs === 0) return;
    socket.pause();
    setTimeout(() => socket.resume(), pauseMs);
  });
  const closed = once(socket, "close") as Promise<[number, Buffer]>;
  await Promise.race([once(socket, "open").catch(() => {}), closed]);
  const stop = keepDoing(options.behaviour, {
    ping: () => socket.ping(),
    input: () => collector.isReading && socket.send(Buffer.concat([Buffer.of(0), INPUT])),
  });
  const [code] = await closed;
  stop();
  return collector.result(error === "" ? `close ${code}` : error);
}

async function overSpdy(options: PacedCommand): Promise<PacedResult> {
  const url = urlOf(options);
  const request = url.startsWith("https") ? requestHttps : requestHttp;
  const outgoing = request(url, {
    method: "POST",
    rejectUnauthorized: false,
    headers: {
      ...headersOf(options),
      Connection: "Upgrade",
      Upgrade: "SPDY/3.1",
      "X-Stream-Protocol-Version": "v4.channel.k8s.io",
    },
  });
  outgoing.end();
  const [, socket, head] = (await once(outgoing, "upgrade")) as [unknown, Duplex, Buffer];
  const collector = new Collector(options.bytesPerSecond);
  let ending = "end";
  const session = new SpdySession("client", {
    send: (bytes) => void (socket.writable && socket.write(bytes)),
    onStream: () => 3,
  });
  let pauseMs = 0;
  const ignore = { onData: () => {}, onEnd: () => {} };
  session.openStream([["streamtype", "error"]], { ...ignore, onData: (part) => collector.status(part) });
  const stdin = session.openStream([["streamtype", "stdin"]], ignore);
  session.openStream([["streamtype", "stdout"]], {
    ...ignore,
    onData: (part) => {
      pauseMs = collector.output(part);
    },
  });
  const receive = async (chunk: Buffer): Promise<void> => {
    session.receive(chunk);
    if (pauseMs === 0) return;
    socket.pause();
    const ms = pauseMs;
    pauseMs = 0;
    await delay(ms);
    socket.resume();
  };
  socket.on("error", ({ message }: Error) => {
    ending = message;
  });
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.on("data", (chunk: Buffer) => void receive(chunk));
  socket.on("end", () => socket.end());
  if (head.byteLength > 0) void receive(head);
  const stop = keepDoing(options.behaviour, {
    ping: () => void session.ping(),
    input: () => collector.isReading && stdin.write(INPUT),
  });
  await closed;
  stop();
  return collector.result(ending);
}

function keepDoing(behaviour: ClientBehaviour, { ping, input }: Record<"ping" | "input", () => unknown>) {
  if (behaviour === "silent") return () => {};
  const timer =
    behaviour === "pings" ? setInterval(ping, PING_INTERVAL_MS) : setInterval(input, INPUT_INTERVAL_MS);
  return () => clearInterval(timer);
}

function urlOf({ gatewayUrl, pod, command }: PacedCommand): string {
  const query = command.map((word) => `command=${encodeURIComponent(word)}`).join("&");
  return `${gatewayUrl}/api/v1/namespaces/default/pods/${pod}/exec?stdin=true&stdout=true&${query}`;
}

function headersOf({ token }: PacedCommand): Record<string, string> {
  return token === "" ? {} : { Authorization: `Bearer ${token}` };
}
