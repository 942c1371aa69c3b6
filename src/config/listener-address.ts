import { isIP } from "node:net";
import type { Section } from "./section.ts";

export interface ListenerAddress {
  /** IP address or host name to listen on; `0.0.0.0` and `::` mean every interface. */
  readonly address: string;
  /** 0 lets the system choose a free one. */
  readonly port: number;
}

const PORT_RANGE = { min: 0, max: 65_535 };

export function readAddress(section: Section, fallback: ListenerAddress, isWhole = false): ListenerAddress {
  const address = section.string("address", fallback.address, checkHost);
  const port = section.count("port", fallback.port, PORT_RANGE);
  if (isWhole) {
    section.finish();
  }
  return { address, port };
}

/** What is wrong with a host to listen on, if anything. */
export function checkHost(value: string): string | undefined {
  // A label of digits alone at the end is a mistyped IPv4 address, which a resolver would look up in vain.
  const isName = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i.test(
    value,
  );
  if (isIP(value) !== 0 || (isName && !/(^|\.)\d+$/.test(value))) {
    return undefined;
  }
  return `must be an IP address or a host name without port, got ${JSON.stringify(value)}`;
}
