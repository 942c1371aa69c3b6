import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { AddressRules } from "./address-rules.ts";
import { joinHostPort } from "./go-dial-error.ts";
import type { ReservedEndpoints, Resolve } from "./reserved-endpoints.ts";

export class NodeAddressRefused extends Error {
  override readonly name = "NodeAddressRefused";
}

/**
 * Turns a node's address, which whoever may write Node objects chooses, into the IP address to dial: looked up once, checked, and dialled
 * as it is, so that no second answer of the name server can lead elsewhere (CVE-2020-8562, CVE-2022-3294).
 */
export class NodeAddresses {
  readonly #rules: AddressRules;
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
    this.#rules = new AddressRules(allowed);
    this.#resolve = resolve;
    this.#reserved = reserved;
  }

  /** Throws NodeAddressRefused when any address of the name is refused, and what the lookup throws. */
  async resolve(host: string, port: number): Promise<string> {
    const addresses = isIP(host) === 0 ? await this.#resolve(host) : [host];
    for (const address of addresses) {
      if (this.#rules.refuses(address)) throw new NodeAddressRefused(`address not allowed: ${address}`);
      if (await this.#reserved?.has(address, port)) {
        throw new NodeAddressRefused(`address not allowed: ${joinHostPort(address, port)} is an API server`);
      }
    }
    const [first] = addresses;
    if (first === undefined) throw new NodeAddressRefused(`no address found for ${host}`);
    return first;
  }

  /** For a proxy that looks names up itself: an address is checked, a name is not looked up here. Throws NodeAddressRefused. */
  async check(host: string, port: number): Promise<string> {
    return isIP(host) === 0 ? host : await this.resolve(host, port);
  }
}

/** Every address of a name, by the system's resolver. */
export async function resolveByDns(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true, verbatim: false })).map(({ address }) => address);
}
