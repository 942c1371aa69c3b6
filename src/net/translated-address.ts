import { AddressList } from "../config/address-list.ts";
import { canonicalAddress, ipv4Of, ipv6Groups } from "../config/canonical-address.ts";

/** Prefixes behind which packets may be carried on to an IPv4 address: NAT64, 6to4, IPv4-compatible, IPv4-translated, Teredo. */
const TRANSLATED = new AddressList([
  "64:ff9b::/96",
  "64:ff9b:1::/48",
  "2002::/16",
  "::/96",
  "::ffff:0:0:0/96",
  "2001::/32",
]);
const LOCAL_NAT64 = new AddressList(["64:ff9b:1::/48"]);

export function isTranslated(address: string): boolean {
  return TRANSLATED.has(address);
}

/**
 * The IPv4 addresses that a translated one may lead to; none for any other. Where the length of a NAT64 prefix is not known (RFC 8215), there
 * is one for each that RFC 6052 has.
 */
export function embeddedAddresses(address: string): string[] {
  if (!isTranslated(address)) return [];
  const groups = ipv6Groups(canonicalAddress(address));
  if (groups[0] === 0x2002) return [ipv4Of(groups, 1)];
  // Teredo: the server's, and the client's with every bit turned (RFC 4380).
  if (groups[0] === 0x2001)
    return [
      ipv4Of(groups, 2),
      ipv4Of(
        groups.map((group) => group ^ 0xffff),
        6,
      ),
    ];
  const last = ipv4Of(groups, 6);
  return LOCAL_NAT64.has(address) ? [last, ...nat64Forms(groups)] : [last];
}

/**
 * RFC 6052, prefixes of 48, 56 and 64 bits: the address goes on around the eight bits behind the 64th. One that begins with zero belongs to
 * another length.
 */
function nat64Forms(groups: readonly number[]): string[] {
  const bytes = groups.flatMap((group) => [group >>> 8, group & 0xff]);
  const withoutReserved = [...bytes.slice(0, 8), ...bytes.slice(9)];
  return [6, 7, 8]
    .filter((start) => withoutReserved[start] !== 0)
    .map((start) => withoutReserved.slice(start, start + 4).join("."));
}
