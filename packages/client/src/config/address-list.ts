import { BlockList, isIP, isIPv4 } from "node:net";
import { canonicalAddress } from "./canonical-address.ts";

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
