import { endOf, faultOf, type SessionEnd } from "../session-end.ts";
import type { SessionObserver, SessionStream, Side } from "./session-observer.ts";

/** Refuses streams of a port-forward to ports that policy forbids. Only sessions whose policy decides by port have it. */
export class PortRules implements SessionObserver {
  readonly isRequired = true;
  readonly #refusalOf: (port: number) => string | undefined;

  /** `refusalOf`: why a port may not be forwarded; undefined where it may. */
  constructor(refusalOf: (port: number) => string | undefined) {
    this.#refusalOf = refusalOf;
  }

  onStream({ port }: SessionStream): SessionEnd | undefined {
    if (port === undefined) return undefined;
    // Anything but a plain number (several values are joined by NUL) might be another port to the node.
    const isPort = /^\d{1,5}$/.test(port);
    const message = isPort ? this.#refusalOf(Number(port)) : "the port is no number";
    return message === undefined ? undefined : endOf("refused", message);
  }

  /** A port that cannot be seen cannot be allowed; neither side means anything without the streams of the other. */
  onUndecodable(side: Side, message: string): SessionEnd | undefined {
    return faultOf(side, "protocol-error", `the ${side} sent malformed SPDY: ${message}`);
  }
}
