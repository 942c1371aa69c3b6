import { createCipheriv, createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";

/**
 * What a connection begins with, and how it goes on:
 * - "echo": each byte comes back at once, and the end at the end;
 * - "answer": nothing comes before the client's end; then its SHA-256, and `ANSWER_BYTES` that follow from it;
 * - "greet": `ANSWER_BYTES` that follow from the client's seed come first, and the end; the client goes on.
 */
export type Conversation = "echo" | "answer" | "greet";

const CODES = { echo: 1, answer: 2, greet: 3 } as const;
const SEED_BYTES = 16;
const ANSWER_BYTES = 256 * 1024;

export interface TwoWayService {
  readonly port: number;
  /** SHA-256 of what a greeted client had sent up to its end, keyed by its seed in hex. */
  readonly received: ReadonlyMap<string, string>;
  close(): Promise<void>;
}

/** A TCP service that reveals bytes that are lost, doubled or out of place. */
export async function startTwoWayService(): Promise<TwoWayService> {
  const received = new Map<string, string>();
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    void serve(socket, received).catch(() => socket.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    received,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

async function serve(socket: Socket, received: Map<string, string>): Promise<void> {
  const head = await take(socket, 1 + SEED_BYTES);
  const seed = head.subarray(1);
  if (head[0] === CODES.echo) socket.pipe(socket);
  else if (head[0] === CODES.answer) {
    const digest = sha256(await allOf(socket));
    socket.end(Buffer.concat([digest, streamOf(digest)]));
  } else {
    socket.end(streamOf(seed));
    received.set(seed.toString("hex"), sha256(await allOf(socket)).toString("hex"));
  }
}

/**
 * Has the conversation with this many random bytes. Resolves with a description of the fault; "" if
 * there is none.
 */
export async function converse(
  stream: Duplex,
  kind: Conversation,
  bytes: number,
  { received }: TwoWayService,
): Promise<string> {
  const seed = randomBytes(SEED_BYTES);
  const input = randomBytes(bytes);
  const heard = allOf(stream);
  heard.catch(() => {});
  stream.write(Buffer.concat([Buffer.of(CODES[kind]), seed]));
  const half = bytes >> 1;
  await written(stream, input.subarray(0, half));
  // A service that greets ends before the client does.
  if (kind === "greet") await heard;
  await written(stream, input.subarray(half));
  stream.end();
  const output = await heard;
  const digest = sha256(input);
  if (kind === "greet") {
    await untilTold(received, seed.toString("hex"));
    if (received.get(seed.toString("hex")) !== digest.toString("hex")) return "the service heard other bytes";
  }
  const expected = { echo: input, answer: Buffer.concat([digest, streamOf(digest)]), greet: streamOf(seed) };
  if (output.equals(expected[kind])) return "";
  return `${kind}: ${output.byteLength} bytes instead of ${expected[kind].byteLength}, or others`;
}

async function untilTold(received: ReadonlyMap<string, string>, seed: string): Promise<void> {
  for (let left = 10_000; left > 0 && !received.has(seed); left -= 10) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function written(stream: Duplex, bytes: Buffer): Promise<void> {
  const STEP = 20_000;
  for (let at = 0; at < bytes.byteLength; at += STEP) {
    if (!stream.write(bytes.subarray(at, at + STEP))) await once(stream, "drain");
  }
}

/** All bytes up to the end. `node:stream/consumers` would then destroy the other direction. */
function allOf(stream: Duplex): Promise<Buffer> {
  const parts: Buffer[] = [];
  stream.on("data", (part: Buffer) => parts.push(Buffer.from(part)));
  return new Promise((resolve, reject) => {
    stream.once("end", () => resolve(Buffer.concat(parts)));
    stream.once("error", reject);
    stream.once("close", () => reject(new Error("the connection closed")));
  });
}

async function take(socket: Socket, bytes: number): Promise<Buffer> {
  for (;;) {
    const head = socket.read(bytes) as Buffer | null;
    if (head !== null) return head;
    await once(socket, "readable");
  }
}

/** Bytes that look random, and are the same for the same seed of 16 bytes or more. */
function streamOf(seed: Buffer): Buffer {
  return createCipheriv("aes-128-ctr", seed.subarray(0, 16), Buffer.alloc(16)).update(
    Buffer.alloc(ANSWER_BYTES),
  );
}

function sha256(bytes: Buffer): Buffer {
  return createHash("sha256").update(bytes).digest();
}
