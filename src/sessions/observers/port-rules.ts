import { endOf, faultOf, type SessionEnd } from "@sluice/client/internal/sessions/session-end";
import type { SessionObserver, SessionStream, Side } from "./session-observer.ts";

/**
 * Refuses port-forward streams to ports that policy forbids. Added only to sessions whose policy has
 * port rules.
 */
export class PortRules implements SessionObserver {
  readonly isRequired = true;
  readonly #refusalOf: (port: number) => string | undefined;

  /** `refusalOf`: why a port may not be forwarded; undefined if it may. */
  constructor(refusalOf: (port: number) => string | undefined) {
    this.#refusalOf = refusalOf;
  }

  onStream({ port }: SessionStream): SessionEnd | undefined {
    if (port === undefined) return undefined;
    // The node might read anything but a plain number (NUL joins several values) as another port.
    const isPort = /^\d{1,5}$/.test(port);
    const message = isPort ? this.#refusalOf(Number(port)) : "the port is no number";
    return message === undefined ? undefined : endOf("refused", message);
  }

  /** Without decoding, a port cannot be checked, so the session ends. */
  onUndecodable(side: Side, message: string): SessionEnd | undefined {
    return faultOf(side, "protocol-error", `the ${side} sent malformed SPDY: ${message}`);
  }
}
