import { createHash, randomInt } from "node:crypto";
import type { Duplex } from "node:stream";
import {
  ACCEPT_GUID,
  applyMask,
  encodeClose,
  encodeControlFrame,
  MAX_FRAME_HEADER_BYTES,
  OPCODE,
  WebSocketFrameDecoder,
  type WebSocketRole,
  writeFrameHeader,
  writeMaskedFrameHeader,
} from "../../../../protocols/websocket/index.ts";

export function acceptOf(key: string): string {
  return createHash("sha1").update(`${key}${ACCEPT_GUID}`).digest("base64");
}

/** Answers every part of a message with a fragment, every ping with a pong and Close with Close, then ends. */
export function echoOn(socket: Duplex, role: WebSocketRole): WebSocketFrameDecoder {
  const newMaskKey = (): number | undefined => (role === "client" ? randomInt(2 ** 32) : undefined);
  const decoder = new WebSocketFrameDecoder(role, {
    onMessage: (part, isFirst, isLast, isText) => {
      const opcode = isFirst ? (isText ? OPCODE.TEXT : OPCODE.BINARY) : OPCODE.CONTINUATION;
      const header = new Uint8Array(MAX_FRAME_HEADER_BYTES);
      const maskKey = newMaskKey();
      const headerBytes =
        maskKey === undefined
          ? writeFrameHeader(header, 0, opcode, part.length, isLast)
          : writeMaskedFrameHeader(header, 0, opcode, part.length, isLast, maskKey);
      if (maskKey !== undefined) applyMask(part, maskKey, 0);
      socket.cork();
      socket.write(header.subarray(0, headerBytes));
      socket.write(part);
      socket.uncork();
    },
    onPing: (payload) => socket.write(encodeControlFrame(OPCODE.PONG, payload, newMaskKey())),
    onPong: () => undefined,
    onClose: (code, reason) => socket.end(encodeClose(code, reason, newMaskKey())),
  });
  socket.on("data", (chunk: Buffer) => decoder.push(chunk));
  socket.on("error", () => socket.destroy());
  return decoder;
}
