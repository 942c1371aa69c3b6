import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import {
  applyMask,
  encodeClose,
  encodeControlFrame,
  MAX_FRAME_HEADER_BYTES,
  NO_CLOSE_CODE,
  OPCODE,
  WebSocketFrameDecoder,
  writeMaskedFrameHeader,
} from "@sluice/protocols/websocket";

interface RawMessage {
  readonly isText: boolean;
  readonly bytes: Buffer;
}

/**
 * How the server ended the session. `code`: from its Close frame, 1005 for one without; undefined
 * if there was none.
 */
interface RawEnd {
  readonly code: number | undefined;
  /** The protocol violation in the server's frames. */
  readonly problem?: string;
}

/** Bytes of messages that are stored; later messages are only counted. */
const MAX_KEPT_BYTES = 8 * 1024 * 1024;

/** A WebSocket client that exposes frames unchanged, and sends any frame. */
export class RawWebSocket {
  readonly messages: RawMessage[] = [];
  readonly pongs: string[] = [];
  readonly ended: Promise<RawEnd>;
  readonly #socket: Duplex;
  #parts: Buffer[] = [];
  #keptBytes = 0;
  #listeners: (() => void)[] = [];

  constructor(socket: Duplex, head: Buffer) {
    this.#socket = socket;
    let code: number | undefined;
    let problem: string | undefined;
    const decoder = new WebSocketFrameDecoder("client", {
      onMessage: (part, _isFirst, isLast, isText) => this.#message(part, isLast, isText),
      onPing: (payload) => this.#write(encodeControlFrame(OPCODE.PONG, payload, maskKey())),
      onPong: (payload) => {
        this.pongs.push(Buffer.from(payload).toString());
        this.#changed();
      },
      onClose: (received) => {
        code = received;
        this.#write(encodeClose(received === NO_CLOSE_CODE ? 1000 : received, "", maskKey()));
        socket.end();
      },
    });
    const push = (chunk: Buffer): void => {
      if (problem !== undefined) return;
      try {
        decoder.push(chunk);
      } catch (error) {
        problem = error instanceof Error ? error.message : String(error);
        socket.destroy();
      }
    };
    this.ended = new Promise((resolve) => {
      socket.once("close", () => resolve(problem === undefined ? { code } : { code, problem }));
    });
    socket.on("error", () => {});
    socket.on("data", push);
    socket.once("end", () => socket.end());
    if (head.byteLength > 0) push(head);
    socket.resume();
  }

  send(payload: Uint8Array, opcode: number = OPCODE.BINARY): void {
    const frame = Buffer.alloc(MAX_FRAME_HEADER_BYTES + payload.byteLength);
    const key = maskKey();
    const start = writeMaskedFrameHeader(frame, 0, opcode, payload.byteLength, true, key);
    const end = start + payload.byteLength;
    frame.set(payload, start);
    applyMask(frame.subarray(start, end), key, 0);
    this.#write(frame.subarray(0, end));
  }

  ping(payload: string): void {
    this.#write(encodeControlFrame(OPCODE.PING, Buffer.from(payload), maskKey()));
  }

  /** Sends Close and waits for the server to end the connection. */
  sendClose(code: number): void {
    this.#write(encodeClose(code, "", maskKey()));
  }

  /** Resolves once the condition is true; checks it at each message and PONG. */
  until(holds: () => boolean): Promise<void> {
    if (holds()) return Promise.resolve();
    return new Promise((resolve) => {
      const listener = (): void => {
        if (!holds()) return;
        this.#listeners = this.#listeners.filter((other) => other !== listener);
        resolve();
      };
      this.#listeners.push(listener);
    });
  }

  #message(part: Uint8Array, isLast: boolean, isText: boolean): void {
    if (this.#keptBytes < MAX_KEPT_BYTES) this.#parts.push(Buffer.from(part));
    this.#keptBytes += part.byteLength;
    if (!isLast) return;
    this.messages.push({ isText, bytes: Buffer.concat(this.#parts) });
    this.#parts = [];
    this.#changed();
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }

  #write(bytes: Uint8Array): void {
    if (this.#socket.writable) this.#socket.write(bytes);
  }
}

function maskKey(): number {
  return randomBytes(4).readUInt32BE();
}
