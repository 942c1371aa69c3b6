import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { onTestFinished } from "vitest";
import { closeServer } from "./http/loopback.ts";
import { frameOf } from "./http2-frames.ts";

export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
} as const;
export const FLAG = { endStream: 1, endHeaders: 4, ack: 1 } as const;
export const PREFACE: Buffer = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export interface SeenFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/**
 * One end of an HTTP/2 connection whose test writes every frame. It stores received frames, and by
 * itself answers only SETTINGS and PING.
 */
export class FramePeer {
  readonly frames: SeenFrame[] = [];
  /** True once the other end has closed or broken the connection. */
  isOver = false;
  /** Called with each frame after it was stored. */
  onFrame: (frame: SeenFrame) => void = () => {};
  readonly socket: Duplex;
  #held = Buffer.alloc(0);
  #skip: number;

  constructor(socket: Duplex, prefaceBytes: number) {
    this.socket = socket;
    this.#skip = prefaceBytes;
    const over = (): void => {
      this.isOver = true;
    };
    socket
      .on("error", () => {})
      .on("end", over)
      .on("close", over);
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
  }

  send(type: number, flags: number, streamId: number, payload?: Uint8Array): void {
    this.socket.write(frameOf(type, flags, streamId, payload));
  }

  reset(streamId: number, code: number): void {
    const payload = Buffer.alloc(4);
    payload.writeUInt32BE(code);
    this.send(FRAME.reset, 0, streamId, payload);
  }

  goAway(lastStreamId: number, code: number): void {
    const payload = Buffer.alloc(8);
    payload.writeUInt32BE(lastStreamId);
    payload.writeUInt32BE(code, 4);
    this.send(FRAME.goAway, 0, 0, payload);
  }

  /** How the other end has ended a stream, in order: "END_STREAM", "RST_STREAM code". */
  endsOf(streamId: number): string[] {
    return this.frames.flatMap(({ type, flags, streamId: id, payload }) => {
      if (id !== streamId) return [];
      if (type === FRAME.reset) return [`RST_STREAM ${payload.readUInt32BE(0)}`];
      return type <= FRAME.headers && (flags & FLAG.endStream) !== 0 ? ["END_STREAM"] : [];
    });
  }

  bodyOf(streamId: number): Buffer {
    const parts = this.frames.filter(({ type, streamId: id }) => id === streamId && type === FRAME.data);
    return Buffer.concat(parts.map(({ payload }) => payload));
  }

  has(type: number, streamId: number): boolean {
    return this.frames.some((frame) => frame.type === type && frame.streamId === streamId);
  }

  #take(chunk: Buffer): void {
    this.#held = Buffer.concat([this.#held, chunk]);
    while (this.#held.length >= this.#skip + 9) {
      const at = this.#skip;
      const end = at + 9 + this.#held.readUIntBE(at, 3);
      if (this.#held.length < end) return;
      const frame = {
        type: this.#held.readUInt8(at + 3),
        flags: this.#held.readUInt8(at + 4),
        streamId: this.#held.readUInt32BE(at + 5),
        payload: Buffer.from(this.#held.subarray(at + 9, end)),
      };
      this.#held = this.#held.subarray(end);
      this.#skip = 0;
      this.#answer(frame);
      this.frames.push(frame);
      this.onFrame(frame);
    }
  }

  #answer({ type, flags, payload }: SeenFrame): void {
    if (type !== FRAME.data && (flags & FLAG.ack) !== 0) return;
    if (type === FRAME.settings) this.send(FRAME.settings, FLAG.ack, 0);
    if (type === FRAME.data && payload.length > 0) {
      // Received bytes are consumed, so the connection's window stays open; a stream's window is
      // large enough.
      const taken = Buffer.alloc(4);
      taken.writeUInt32BE(payload.length);
      this.send(FRAME.windowUpdate, 0, 0, taken);
    }
    if (type === FRAME.ping) this.send(FRAME.ping, FLAG.ack, 0, payload);
  }
}

/** `raw`: its TCP connection, so that tests can break it. */
export type FrameClient = FramePeer & { readonly raw: Socket };

/** Opens a client, over TLS or with prior knowledge. It is closed at the end of the test. */
export async function openFrameClient(port: number, isSecure = false): Promise<FrameClient> {
  const raw = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  onTestFinished(() => void raw.destroy());
  raw.on("error", () => {});
  await once(raw, "connect");
  const socket = isSecure
    ? connectTls({ socket: raw, ALPNProtocols: ["h2"], rejectUnauthorized: false })
    : raw;
  const client = new FramePeer(socket, 0);
  if (isSecure) await once(socket, "secureConnect");
  socket.write(PREFACE);
  client.send(FRAME.settings, 0, 0);
  return Object.assign(client, { raw });
}

export interface FrameBackend {
  readonly port: number;
  readonly sockets: Socket[];
  readonly peers: FramePeer[];
  stop(): Promise<void>;
}

/** Starts an h2c backend. `onFrame` gets each frame. */
export async function startFrameBackend(
  onFrame: (peer: FramePeer, frame: SeenFrame) => void,
  settings?: Uint8Array,
): Promise<FrameBackend> {
  const sockets: Socket[] = [];
  const peers: FramePeer[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    const peer = new FramePeer(socket, PREFACE.length);
    peer.onFrame = (frame) => onFrame(peer, frame);
    peers.push(peer);
    peer.send(FRAME.settings, 0, 0, settings);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const stop = (): Promise<void> => closeServer(server, sockets);
  return { port: (server.address() as AddressInfo).port, sockets, peers, stop };
}
