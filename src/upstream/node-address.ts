import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { AddressList, plainAddress } from "../config/address-list.ts";
import { joinHostPort } from "./go-dial-error.ts";
import type { ReservedEndpoints, Resolve } from "./reserved-endpoints.ts";

/** Where no node is: this machine, the link, the cloud's metadata, everybody. */
const NEVER_A_NODE = new AddressList([
  "0.0.0.0/8",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "224.0.0.0/4",
  "255.255.255.255/32",
  "100.100.100.200/32", // Alibaba Cloud's metadata
  "168.63.129.16/32", // Azure's wire server
  "::/128",
  "::1/128",
  "fe80::/10",
  "ff00::/8",
  "fd00:ec2::254/128", // AWS's metadata over IPv6
]);

/** NAT64 and 6to4 lead back into IPv4 without a look at where. */
const TRANSLATED = new AddressList(["64:ff9b::/96", "2002::/16", "::/96"]);

export class NodeAddressRefused extends Error {
  override readonly name = "NodeAddressRefused";
}

/**
 * Turns a node's address, which whoever may write Node objects chooses, into the IP address to dial: looked up once, checked, and dialled
 * as it is, so that no second answer of the name server can lead elsewhere (CVE-2020-8562, CVE-2022-3294).
 */
export class NodeAddresses {
  readonly #allowed: AddressList;
  readonly #resolve: Resolve;
  readonly #reserved: Pick<ReservedEndpoints, "has"> | undefined;

  /**
   * `allowed`: networks that are taken although they are among the refused ones. `reserved`: endpoints that are never a node's, whatever
   * is allowed.
   */
  constructor(
    allowed: readonly string[],
    resolve: Resolve = resolveByDns,
    reserved?: Pick<ReservedEndpoints, "has">,
  ) {
    this.#allowed = new AddressList(allowed);
    this.#resolve = resolve;
    this.#reserved = reserved;
  }

  /** Throws NodeAddressRefused when any address of the name is refused, and what the lookup throws. */
  async resolve(host: string, port: number): Promise<string> {
    const addresses = isIP(host) === 0 ? await this.#resolve(host) : [host];
    for (const address of addresses) {
      if (this.#isRefused(address)) throw new NodeAddressRefused(`address not allowed: ${address}`);
      if (await this.#reserved?.has(address, port)) {
        throw new NodeAddressRefused(`address not allowed: ${joinHostPort(address, port)} is an API server`);
      }
    }
    const [first] = addresses;
    if (first === undefined) throw new NodeAddressRefused(`no address found for ${host}`);
    return first;
  }

  #isRefused(address: string): boolean {
    const plain = plainAddress(address);
    if (isIP(plain) === 0) return true;
    return !this.#allowed.has(plain) && (NEVER_A_NODE.has(plain) || TRANSLATED.has(plain));
  }
}

/** Every address of a name, by the system's resolver. */
export async function resolveByDns(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true, verbatim: false })).map(({ address }) => address);
}
