import { isIP, isIPv4 } from "node:net";

const MAPPED = /^::ffff:[0-9a-f]+:[0-9a-f]+$/;

/**
 * An IP address's spelling for comparisons: no zone or brackets, IPv6 by RFC 5952, IPv4 in IPv6
 * (`::ffff:0:0/96`) as IPv4. Other text stays unchanged.
 */
export function canonicalAddress(address: string): string {
  // Most addresses need no work.
  if (!/[:%[\]]/.test(address)) return address;
  // Node reports IPv4 clients of a dual-stack socket this way.
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined && isIPv4(mapped)) return mapped;
  const bare = address.replace(/^\[|\]$/g, "").replace(/%.*$/, "");
  if (isIP(bare) !== 6) return bare;
  // The URL parser writes the shortest form, with an embedded IPv4 address in hexadecimal.
  const text = new URL(`http://[${bare}]`).hostname.slice(1, -1);
  return MAPPED.test(text) ? ipv4Of(groupsOf(text), 6) : text;
}

/** The eight 16-bit groups of an IPv6 address, in any spelling without a zone. */
export function ipv6Groups(address: string): number[] {
  return groupsOf(new URL(`http://[${address}]`).hostname.slice(1, -1));
}

/** The IPv4 address in two groups, starting at `index`. */
export function ipv4Of(groups: readonly number[], index: number): string {
  const [high = 0, low = 0] = groups.slice(index);
  return [high >>> 8, high & 0xff, low >>> 8, low & 0xff].join(".");
}

function groupsOf(canonical: string): number[] {
  const [head = "", tail = ""] = canonical.split("::");
  const [left, right] = [head, tail].map((text) => (text === "" ? [] : text.split(":"))) as [
    string[],
    string[],
  ];
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => "0");
  return [...left, ...zeros, ...right].map((group) => Number.parseInt(group, 16));
}
