import { ProtocolError } from "../../../protocols/protocol-error.ts";
import { FrameDecoder, type SpdyHeaders, type SpdyLimits } from "../../../protocols/spdy/index.ts";
import { endOf, faultOf, type SessionEnd } from "../carriers/session-end.ts";

/**
 * Reads along what a port-forward client sends in SPDY and finds the ports that its streams ask for (header `port` of SYN_STREAM). What
 * it refuses must not be passed on. Only sessions whose policy decides by port have one: it inflates every header block.
 */
export class PortGuard {
  readonly #decoder: FrameDecoder;
  #end: SessionEnd | undefined;

  /** `refusalOf` tells why a port may not be forwarded. */
  constructor(refusalOf: (port: number) => string | undefined, limits: SpdyLimits) {
    this.#decoder = new FrameDecoder(
      {
        onData: () => {},
        onControl: (frame) => {
          if (frame.type === "SYN_STREAM" || frame.type === "HEADERS") this.#check(frame.headers, refusalOf);
        },
      },
      limits,
    );
  }

  /** To be asked before each chunk is passed on. Once it has said no, it says so for ever. */
  inspect(chunk: Uint8Array): SessionEnd | undefined {
    if (this.#end !== undefined) return this.#end;
    try {
      this.#decoder.push(chunk);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#end = faultOf("client", "protocol-error", `the client sent malformed SPDY: ${error.message}`);
    }
    return this.#end;
  }

  #check(headers: SpdyHeaders, refusalOf: (port: number) => string | undefined): void {
    const value = headers.get("port");
    if (value === undefined || this.#end !== undefined) return;
    // What is no plain number (several values are joined by NUL) might be read as another one by the node.
    const isPort = /^\d{1,5}$/.test(value);
    const message = isPort ? refusalOf(Number(value)) : "the port is no number";
    if (message !== undefined) this.#end = endOf("refused", message);
  }
}
