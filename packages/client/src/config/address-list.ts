import { BlockList, isIP, isIPv4 } from "node:net";

const MAPPED = /^::ffff:[0-9a-f]+:[0-9a-f]+$/;

/**
 * A set of IP addresses and networks (`10.0.0.0/8`, `::1`). An IPv4 address in IPv6 counts as IPv4.
 */
export class AddressList {
  /** Separate, because one BlockList for both finds IPv4 addresses in some IPv6 networks. */
  readonly #ipv4 = new BlockList();
  readonly #ipv6 = new BlockList();
  readonly #isEmpty: boolean;

  /** Throws RangeError for an entry that `checkNetwork` refuses. */
  constructor(networks: readonly string[]) {
    this.#isEmpty = networks.length === 0;
    for (const network of networks) {
      const wrong = checkNetwork(network);
      if (wrong !== undefined) throw new RangeError(wrong);
      const [address = "", bits] = network.split("/");
      const plain = canonicalAddress(address);
      const width = isIP(address) === 4 ? 32 : 128;
      const isMapped = width === 128 && isIP(plain) === 4;
      const length = bits === undefined ? width : Number(bits);
      // An IPv4 network in IPv6 spelling; a shorter prefix also contains IPv6 addresses.
      if (isMapped && length >= 96) this.#ipv4.addSubnet(plain, length - 96, "ipv4");
      else if (width === 32) this.#ipv4.addSubnet(address, length, "ipv4");
      else this.#ipv6.addSubnet(address, length, "ipv6");
    }
  }

  has(address: string): boolean {
    if (this.#isEmpty) return false;
    const plain = canonicalAddress(address);
    const family = isIP(plain);
    if (family === 4) return this.#ipv4.check(plain, "ipv4");
    return family === 6 && this.#ipv6.check(plain, "ipv6");
  }
}

/** Whether only this machine can reach the address. */
export function isLoopback(address: string): boolean {
  const plain = canonicalAddress(address);
  return plain === "::1" || (isIPv4(plain) && plain.startsWith("127."));
}

/** The problem with an address or network, or undefined. */
export function checkNetwork(value: string): string | undefined {
  const [address = "", bits, ...rest] = value.split("/");
  const family = isIP(address);
  const isNumber =
    bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
  if (family !== 0 && isNumber && rest.length === 0) return undefined;
  return `must be an IP address or a network such as "10.0.0.0/8", got ${JSON.stringify(value)}`;
}

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
