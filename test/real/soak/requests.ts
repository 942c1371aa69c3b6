import { once } from "node:events";
import { Agent, get, type IncomingMessage } from "node:http";
import { type ClientHttp2Session, connect, constants } from "node:http2";
import { connect as connectTcp } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { type Chance, seededBytes } from "./seeded.ts";
import { Interrupted, type Scenario, sameBytes } from "./sessions.ts";
import type { SoakWorld } from "./world.ts";

const MAX_BODY_BYTES = 300_000;

/** Requests at the front door, over HTTP/1.1 and HTTP/2, read at once, with pauses, or not to their end. */
export const requestScenarios = {
  "h1-plain": (world, chance) => overHttp1(world, chance, "plain.example"),
  "h1-h2c": (world, chance) => overHttp1(world, chance, "h2c.example"),
  "h2-plain": (world, chance) => overHttp2(world, chance, "plain.example"),
  "h2-h2c": (world, chance) => overHttp2(world, chance, "h2c.example"),
  "h1-bad": async (world) => {
    const response = await answered(world, "/bad", "bad.example").catch(() => undefined);
    if (response !== undefined) onlyItsOwn(await wholeOf(response).catch(() => Buffer.alloc(0)));
  },
  "h2-bad": async (world) => {
    await withSession(world, async (session) => {
      const stream = session.request({ ":path": "/bad", ":authority": "bad.example" });
      stream.on("error", () => {});
      const parts: Buffer[] = [];
      stream.on("data", (part: Buffer) => parts.push(part));
      await new Promise((resolve) => stream.once("close", resolve));
      onlyItsOwn(Buffer.concat(parts));
    });
  },
  "h1-left": async (world, chance) => {
    const response = await answered(world, pathOf(chance).path, "plain.example");
    await once(response, "readable");
    response.destroy();
  },
  "h2-left": async (world, chance) => {
    await withSession(world, async (session) => {
      const stream = session.request({ ":path": pathOf(chance).path, ":authority": "plain.example" });
      stream.on("error", () => {});
      await new Promise((resolve) => stream.once("response", resolve).once("close", resolve));
      stream.close();
      await new Promise((resolve) => (stream.closed ? resolve(undefined) : stream.once("close", resolve)));
    });
  },
  "h2-tls-reset": overBrokenTls,
} satisfies Record<string, Scenario>;

const agent = new Agent({ keepAlive: true, maxSockets: 8 });
let shared: ClientHttp2Session | undefined;

/** Lets go of the connections that scenarios share. */
export function closeClients(): void {
  agent.destroy();
  shared?.destroy();
  shared = undefined;
}

function pathOf(chance: Chance): { path: string; body: Buffer } {
  const [seed, length] = [chance.below(1_000_000), chance.below(MAX_BODY_BYTES)];
  return { path: `/${seed}/${length}`, body: seededBytes(seed, length) };
}

function answered({ ingressPort }: SoakWorld, path: string, host: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port: ingressPort, path, agent, headers: { host } }, resolve).on(
      "error",
      reject,
    );
  });
}

async function overHttp1(world: SoakWorld, chance: Chance, host: string): Promise<void> {
  const { path, body } = pathOf(chance);
  const response = await answered(world, path, host).catch((error: Error) => {
    throw new Interrupted(error.message);
  });
  if (response.statusCode !== 200) {
    response.resume();
    throw new Interrupted(`answered ${response.statusCode}`);
  }
  if (chance.below(2) === 0) await delay(chance.below(50));
  sameBytes(await wholeOf(response), body);
}

async function overHttp2(world: SoakWorld, chance: Chance, host: string): Promise<void> {
  const { path, body } = pathOf(chance);
  await withSession(world, async (session) => {
    const stream = session.request({ ":path": path, ":authority": host });
    let status = 0;
    let failure = "";
    stream.on("error", (error) => {
      failure = error.message;
    });
    stream.once("response", (headers) => {
      status = Number(headers[":status"]);
    });
    const parts: Buffer[] = [];
    stream.on("data", (part: Buffer) => {
      parts.push(part);
      if (chance.below(4) > 0) return;
      stream.pause();
      setTimeout(() => stream.resume(), chance.below(30));
    });
    await new Promise((resolve) => stream.once("close", resolve));
    const received = Buffer.concat(parts);
    // Sent before GOAWAY arrived: RFC 9113 section 8.7.
    if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) return;
    if (status !== 200 || failure !== "" || stream.rstCode !== 0) {
      if (status === 200) sameBytes(received, body.subarray(0, received.length));
      throw new Interrupted(`answered ${status}, reset with ${stream.rstCode} ${failure}`);
    }
    sameBytes(received, body);
  });
}

/** A client over TLS that is gone, with all of its connection, after 3 to 6 KB of its answers. */
async function overBrokenTls(world: SoakWorld, chance: Chance): Promise<void> {
  const resetAfterBytes = chance.between(3 * 1024, 6 * 1024);
  const raw = connectTcp(world.ingressTlsPort, "127.0.0.1").on("error", () => {});
  const socket = connectTls({ socket: raw, ALPNProtocols: ["h2"], rejectUnauthorized: false });
  const session = connect("https://door.example", {
    createConnection: () => socket,
    // No stream gets more than that before the reset.
    settings: { initialWindowSize: resetAfterBytes },
  });
  let isReset = false;
  let receivedBytes = 0;
  session.on("error", () => {});
  const closed = new Promise((resolve) => session.once("close", resolve));
  const answers = Array.from({ length: 1 + chance.below(4) }, () => {
    const [seed, length] = [chance.below(1_000_000), chance.between(64 * 1024, MAX_BODY_BYTES)];
    const authority = chance.oneOf(["plain.example", "h2c.example"]);
    const stream = session.request({ ":path": `/${seed}/${length}`, ":authority": authority });
    const parts: Buffer[] = [];
    stream.on("error", () => {});
    stream.on("data", (part: Buffer) => {
      parts.push(part);
      receivedBytes += part.length;
      if (receivedBytes < resetAfterBytes) return;
      isReset = true;
      raw.resetAndDestroy();
    });
    return { seed, length, parts };
  });
  await closed;
  raw.destroy();
  if (!isReset) throw new Interrupted(`the connection ended after ${receivedBytes} bytes`);
  for (const { seed, length, parts } of answers) {
    const received = Buffer.concat(parts);
    sameBytes(received, seededBytes(seed, length).subarray(0, received.length));
  }
}

async function withSession(
  { ingressPort }: SoakWorld,
  use: (session: ClientHttp2Session) => Promise<void>,
): Promise<void> {
  if (shared === undefined || shared.closed || shared.destroyed) {
    shared = connect(`http://127.0.0.1:${ingressPort}`);
    shared.on("error", () => {});
  }
  await use(shared);
}

async function wholeOf(response: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  try {
    for await (const part of response) parts.push(part as Buffer);
  } catch (error) {
    throw new Interrupted((error as Error).message);
  }
  return Buffer.concat(parts);
}

/** The misbehaving backend's bodies hold `x` alone; an error page of the gateway's is text. Seeded bytes are neither. */
function onlyItsOwn(body: Buffer): void {
  if (/^[\t\n\r\x20-\x7e]*$/.test(body.toString("latin1"))) return;
  sameBytes(body, Buffer.alloc(body.length, "x"));
}
