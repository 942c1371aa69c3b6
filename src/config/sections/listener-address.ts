import { isIP } from "node:net";
import { checkNetwork } from "@sluice/client/internal/config/address-list";
import { table } from "@sluice/client/internal/config/field";
import { type FieldOptions, string } from "@sluice/client/internal/config/fields";
import { strings } from "../list-fields.ts";
import { count } from "../number-fields.ts";
import { optionalSection } from "../section-fields.ts";

interface ListenerAddress {
  readonly address: string;
  /** 0 means any free port. */
  readonly port: number;
}

/** Listeners default to loopback, which other machines cannot reach. */
export function addressFields(
  port: number,
  flags: { readonly [Name in keyof ListenerAddress]?: FieldOptions } = {},
) {
  return {
    address: string("IP address or host name to listen on.", {
      ...flags.address,
      default: "127.0.0.1",
      check: checkHost,
    }),
    port: listenerPort("Port to listen on; 0: any free one.", port, flags.port),
  };
}

export function listenerPort(sentence: string, port: number, options: FieldOptions = {}) {
  return count(sentence, { ...options, as: "*", default: port, from: 0, to: 65_535 });
}

/** Parses a flag's port; the message is the flag's own. */
export function portOf(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new RangeError(`must be a port between 0 (any free one) and 65535, got ${JSON.stringify(text)}`);
}

/** The problem with a host to listen on, or undefined. */
export function checkHost(value: string): string | undefined {
  // A name that ends in digits is a mistyped IPv4 address, which no resolver finds.
  const isName = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i.test(
    value,
  );
  if (isIP(value) !== 0 || (isName && !/(^|\.)\d+$/.test(value))) {
    return undefined;
  }
  return `must be an IP address or a host name without port, got ${JSON.stringify(value)}`;
}

const proxyProtocolFields = table({
  from: strings(
    "Addresses and networks of the proxies. Each of their connections must begin with a header.",
    {
      required: "is required: proxies whose headers are read",
      check: checkNetwork,
    },
  ),
});

/** For a listener behind TCP proxies. */
export const proxyProtocol = () =>
  optionalSection(
    "Reads the client's address from PROXY protocol headers, version 1 or 2, before TLS. Absent: such headers are bad requests.",
    proxyProtocolFields,
  );
