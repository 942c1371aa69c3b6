import { BlockList, isIP } from "node:net";

/** IP addresses and networks (`10.0.0.0/8`, `::1`), to ask whether an address is among them. IPv4 in IPv6 is the IPv4 address. */
export class AddressList {
  readonly #list = new BlockList();
  readonly #isEmpty: boolean;

  /** Throws RangeError for an entry that `checkNetwork` finds wrong. */
  constructor(networks: readonly string[]) {
    this.#isEmpty = networks.length === 0;
    for (const network of networks) {
      const wrong = checkNetwork(network);
      if (wrong !== undefined) throw new RangeError(wrong);
      const [address = "", bits] = network.split("/");
      const family = isIP(address) === 4 ? "ipv4" : "ipv6";
      this.#list.addSubnet(
        address,
        bits === undefined ? (family === "ipv4" ? 32 : 128) : Number(bits),
        family,
      );
    }
  }

  has(address: string): boolean {
    if (this.#isEmpty) return false;
    const plain = plainAddress(address);
    const family = isIP(plain);
    return family !== 0 && this.#list.check(plain, family === 4 ? "ipv4" : "ipv6");
  }
}

/** What is wrong with an address or network, if anything. */
export function checkNetwork(value: string): string | undefined {
  const [address = "", bits, ...rest] = value.split("/");
  const family = isIP(address);
  const isNumber =
    bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
  if (family !== 0 && isNumber && rest.length === 0) return undefined;
  return `must be an IP address or a network such as "10.0.0.0/8", got ${JSON.stringify(value)}`;
}

/** Without zone and brackets; an IPv4 address in either IPv6 spelling (`::ffff:10.0.0.1`, `::ffff:a00:1`) as IPv4. */
export function plainAddress(address: string): string {
  // What most addresses are.
  if (!/[:%[\]]/.test(address)) return address;
  const bare = address.replace(/^\[|\]$/g, "").replace(/%.*$/, "");
  const mapped = /^::ffff:(?:(\d+\.\d+\.\d+\.\d+)|([0-9a-f]{1,4}):([0-9a-f]{1,4}))$/i.exec(bare);
  if (mapped === null) return bare;
  const [, dotted, high = "0", low = "0"] = mapped;
  if (dotted !== undefined) return dotted;
  const [first, second] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return [first >> 8, first & 255, second >> 8, second & 255].join(".");
}
