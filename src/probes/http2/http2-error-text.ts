import { errorCodeName, type Http2Error } from "@sluice/protocols/http2";

const TOO_LARGE = "http2: frame too large";

/** Go's HTTP/2 words for a server's fault. A probe's request is always the first stream. */
export function http2ErrorText({ fault, code, message }: Http2Error): string {
  switch (fault) {
    case "connection":
      return `connection error: ${errorCodeName(code)}`;
    case "stream":
      return streamErrorText(code, message);
    case "frame-too-large":
      return TOO_LARGE;
    case "looks-like-http1":
      return `http2: failed reading the frame payload: ${TOO_LARGE}, note that the frame header looked like an HTTP/1.1 header`;
    case "header-list-too-large":
      return "http2: response header list larger than advertised limit";
  }
}

/** Go's words for the end of the probe's only stream. */
export function streamErrorText(code: number, reason: string): string {
  return `stream error: stream ID 1; ${errorCodeName(code)}${reason === "" ? "" : `; ${reason}`}`;
}
