import type { Socket } from "node:net";
import { FrameEncoder } from "../../protocols/spdy/index.ts";
import { afterHead, listenRaw } from "./http/loopback.ts";
import { frameRecorder, type SeenFrame } from "./scripted-spdy-peer.ts";

/**
 * A node whose every byte the test writes. It reads and records SPDY frames, and answers none by
 * itself.
 */
export interface RawNode {
  readonly port: number;
  /** The connections that were upgraded. */
  readonly sockets: Socket[];
  /** Frames received on all connections so far. */
  readonly frames: SeenFrame[];
  readonly openSockets: number;
  close(): Promise<void>;
}

export interface RawNodeOptions {
  readonly protocol?: string;
  /** Called when the 101 has been written. */
  onSession?(socket: Socket, encoder: FrameEncoder): void;
}

export async function startRawNode(options: RawNodeOptions = {}): Promise<RawNode> {
  const frames: SeenFrame[] = [];
  const sockets: Socket[] = [];
  const { protocol = "v4.channel.k8s.io", onSession } = options;
  const raw = await listenRaw((socket) => {
    afterHead(socket, () => {
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: ${protocol}\r\n\r\n`,
      );
      const recorder = frameRecorder();
      socket.on("data", (chunk) => {
        recorder.push(chunk);
        frames.push(...recorder.take());
      });
      sockets.push(socket);
      onSession?.(socket, new FrameEncoder());
    });
  });
  return {
    port: raw.port,
    sockets,
    frames,
    get openSockets() {
      return raw.sockets.filter((socket) => !socket.destroyed).length;
    },
    close: () => raw.close(),
  };
}
