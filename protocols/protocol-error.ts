// protocols: pure codecs: bytes in; frames, events and bytes out. No sockets, timers, clock, logger, configuration

/** Why a peer's bytes were refused. A closed list: edges map each code to a status, a close code or a reset. */
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

/** The peer broke the protocol. The decoder that threw it is finished and must not be fed again. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
  readonly code: ProtocolErrorCode;

  constructor(code: ProtocolErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
