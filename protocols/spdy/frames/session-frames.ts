import { readUint24, readUint32, writeUint24, writeUint32 } from "../../bytes/index.ts";
import { ProtocolError } from "../../protocol-error.ts";
import { FRAME_HEADER_BYTES, FRAME_TYPE, LOW_31_BITS, type SpdyLimits } from "../constants.ts";
import { allocateControlFrame, encodeTwoWords, requireNoFlags } from "./control-layout.ts";

export interface SettingsEntry {
  readonly flags: number;
  readonly id: number;
  readonly value: number;
}

/** Connection settings (SPDY/3 section 2.6.4). Kubernetes' peers never send them and ignore received ones. */
export interface SettingsFrame {
  readonly type: "SETTINGS";
  readonly entries: readonly SettingsEntry[];
}

// |       number of entries (32)     |
// | flags (8)  |      id (24)        |  each
// |          value (32)              |
export const SETTINGS_FIXED_BYTES = 4;
const ENTRY_BYTES = 8;

/** Ignores the frame's own flags (CLEAR_SETTINGS), because no setting is ever stored. */
export function decodeSettings(payload: Uint8Array, limits: SpdyLimits): SettingsFrame {
  const count = readUint32(payload, 0);
  if (count > limits.maxSettingsEntries) {
    throw new ProtocolError("too-many-settings", `SETTINGS with ${count} entries`);
  }
  if (payload.length !== SETTINGS_FIXED_BYTES + count * ENTRY_BYTES) {
    throw new ProtocolError("malformed-frame", `SETTINGS with ${count} entries in ${payload.length} bytes`);
  }
  const entries: SettingsEntry[] = [];
  for (let offset = SETTINGS_FIXED_BYTES; offset < payload.length; offset += ENTRY_BYTES) {
    entries.push({
      flags: payload[offset] as number,
      id: readUint24(payload, offset + 1),
      value: readUint32(payload, offset + 4),
    });
  }
  return { type: "SETTINGS", entries };
}

export function encodeSettings(frame: SettingsFrame): Uint8Array {
  const count = frame.entries.length;
  const bytes = allocateControlFrame(FRAME_TYPE.SETTINGS, 0, SETTINGS_FIXED_BYTES + count * ENTRY_BYTES);
  writeUint32(bytes, FRAME_HEADER_BYTES, count);
  let offset = FRAME_HEADER_BYTES + SETTINGS_FIXED_BYTES;
  for (const entry of frame.entries) {
    bytes[offset] = entry.flags;
    writeUint24(bytes, offset + 1, entry.id);
    writeUint32(bytes, offset + 4, entry.value);
    offset += ENTRY_BYTES;
  }
  return bytes;
}

/** Asks whether the peer is there, or answers (SPDY/3 section 2.6.5). A client's ids are odd, a server's even. */
export interface PingFrame {
  readonly type: "PING";
  readonly id: number;
}

export const PING_BYTES = 4;

export function decodePing(flags: number, payload: Uint8Array): PingFrame {
  requireNoFlags("PING", flags);
  const id = readUint32(payload, 0);
  if (id === 0) throw new ProtocolError("malformed-frame", "PING with id 0");
  return { type: "PING", id };
}

export function encodePing(frame: PingFrame): Uint8Array {
  const bytes = allocateControlFrame(FRAME_TYPE.PING, 0, PING_BYTES);
  writeUint32(bytes, FRAME_HEADER_BYTES, frame.id);
  return bytes;
}

/**
 * Ends the session (SPDY/3 section 2.6.6) at once: spdystream stops reading at a GOAWAY, so a
 * session cannot drain after it.
 */
export interface GoAwayFrame {
  readonly type: "GOAWAY";
  readonly lastGoodStreamId: number;
  /** One of `GOAWAY`, or an unknown number. */
  readonly status: number;
}

// |X|  last good stream id (31)      |
// |          status (32)             |
export const GOAWAY_BYTES = 8;

export function decodeGoAway(flags: number, payload: Uint8Array): GoAwayFrame {
  requireNoFlags("GOAWAY", flags);
  return {
    type: "GOAWAY",
    lastGoodStreamId: readUint32(payload, 0) & LOW_31_BITS,
    status: readUint32(payload, 4),
  };
}

export function encodeGoAway(frame: GoAwayFrame): Uint8Array {
  return encodeTwoWords(FRAME_TYPE.GOAWAY, frame.lastGoodStreamId, frame.status);
}
