// protocols: pure codecs: bytes in; frames, events and bytes out. No sockets, timers, clock, logger, configuration

/**
 * Why we refused a peer's bytes. The list is closed: edges map each code to a status, a close code
 * or a reset.
 */
export type ProtocolErrorCode =
  | "malformed-frame"
  | "frame-too-large"
  | "malformed-header-block"
  | "header-block-too-large"
  | "too-many-headers"
  | "too-many-streams"
  | "too-many-settings"
  | "unsupported"
  | "message-too-large"
  | "malformed-message"
  | "invalid-utf8"
  | "too-many-fragments";

/** The peer violated the protocol. The decoder that threw this is finished and must get no more bytes. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
  readonly code: ProtocolErrorCode;

  constructor(code: ProtocolErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
