import { writeUint24, writeUint32 } from "../bytes/index.ts";
import { DEFAULT_MAX_FRAME_BYTES, FLAGS, FRAME, FRAME_HEADER_BYTES, SETTING } from "./limits.ts";

/** The first bytes of a client (RFC 9113 section 3.4). */
const CLIENT_PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/** One frame, header and payload. `payload` is at most `DEFAULT_MAX_FRAME_BYTES` long. */
export function encodeFrame(type: number, flags: number, streamId: number, payload: Uint8Array): Uint8Array {
  const frame = new Uint8Array(FRAME_HEADER_BYTES + payload.length);
  writeUint24(frame, 0, payload.length);
  frame[3] = type;
  frame[4] = flags;
  writeUint32(frame, 5, streamId);
  frame.set(payload, FRAME_HEADER_BYTES);
  return frame;
}

/** A SETTINGS frame with these values by number. */
export function encodeSettings(settings: readonly (readonly [id: number, value: number])[]): Uint8Array {
  const payload = new Uint8Array(6 * settings.length);
  for (const [index, [id, value]] of settings.entries()) {
    payload[6 * index + 1] = id;
    writeUint32(payload, 6 * index + 2, value);
  }
  return encodeFrame(FRAME.SETTINGS, 0, 0, payload);
}

/** Everything a client sends before its first request. */
function encodePreface(settings: readonly (readonly [id: number, value: number])[]): Uint8Array {
  const preface = Uint8Array.from(CLIENT_PREFACE, (character) => character.charCodeAt(0));
  return concatenated([preface, encodeSettings(settings)]);
}

/** A header block as HEADERS, followed by CONTINUATION if it exceeds one frame. */
export function encodeHeaders(streamId: number, block: Uint8Array, isEnd: boolean): Uint8Array {
  const frames: Uint8Array[] = [];
  for (let at = 0; at === 0 || at < block.length; at += DEFAULT_MAX_FRAME_BYTES) {
    const part = block.subarray(at, at + DEFAULT_MAX_FRAME_BYTES);
    const isLast = at + DEFAULT_MAX_FRAME_BYTES >= block.length;
    const flags = (isLast ? FLAGS.END_HEADERS : 0) | (at === 0 && isEnd ? FLAGS.END_STREAM : 0);
    frames.push(encodeFrame(at === 0 ? FRAME.HEADERS : FRAME.CONTINUATION, flags, streamId, part));
  }
  return frames.length === 1 ? (frames[0] as Uint8Array) : concatenated(frames);
}

export function encodeWindowUpdate(streamId: number, increment: number): Uint8Array {
  const payload = new Uint8Array(4);
  writeUint32(payload, 0, increment);
  return encodeFrame(FRAME.WINDOW_UPDATE, 0, streamId, payload);
}

export function concatenated(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((bytes, part) => bytes + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Disables pushes. All other settings keep the protocol's defaults and are not sent. */
export const CLIENT_PREFACE_BYTES: Uint8Array = encodePreface([[SETTING.ENABLE_PUSH, 0]]);

/**
 * The preface and a complete first request, built once and sent on many connections. `headers` come
 * from `encodeHeaders` for stream 1; `body` fits in one frame.
 */
export function encodeFirstRequest(headers: Uint8Array, body: Uint8Array = new Uint8Array(0)): Uint8Array {
  const data = body.length === 0 ? body : encodeFrame(FRAME.DATA, FLAGS.END_STREAM, 1, body);
  return concatenated([CLIENT_PREFACE_BYTES, headers, data]);
}
