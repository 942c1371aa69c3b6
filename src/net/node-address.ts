import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import { isHost } from "@sluice/client/internal/net/host";
import { AddressRules } from "./address-rules.ts";
import type { ReservedEndpoints, Resolve } from "./reserved-endpoints.ts";

export class NodeAddressRefused extends Error {
  override readonly name = "NodeAddressRefused";
}

/**
 * Resolves a Node object's address once, checks the IP and dials exactly that one, so that a second
 * DNS answer cannot lead elsewhere (CVE-2020-8562, CVE-2022-3294).
 */
export class NodeAddresses {
  readonly #rules: AddressRules;
  readonly #resolve: Resolve;
  readonly #reserved: Pick<ReservedEndpoints, "has"> | undefined;

  /**
   * `allowed`: networks that are dialled although they are forbidden by default. `reserved`: endpoints
   * that are never a node's, even in allowed networks.
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

  /** Throws NodeAddressRefused if any address of the name is forbidden. Lookup errors pass through. */
  async resolve(host: string, port: number): Promise<string> {
    requireHost(host);
    const addresses = isIP(host) === 0 ? await this.#resolve(host) : [host];
    for (const address of addresses) {
      if (this.#rules.refuses(address)) throw notAllowed(address);
      if (await this.#reserved?.has(address, port)) {
        throw notAllowed(`${joinHostPort(address, port)} is an API server`);
      }
    }
    const [first] = addresses;
    if (first === undefined) throw new NodeAddressRefused(`no address found for ${host}`);
    return first;
  }

  /**
   * For a proxy that resolves names itself: checks an address, but does not look names up. Throws
   * NodeAddressRefused.
   */
  async check(host: string, port: number): Promise<string> {
    if (isIP(host) !== 0) return await this.resolve(host, port);
    requireHost(host);
    if (/(^|\.)localhost\.?$/i.test(host) && this.#rules.refuses("127.0.0.1")) throw notAllowed(host);
    return host;
  }
}

/** `2130706433`, `0x7f.1` and `127.1` are not names: resolvers read them as addresses without the DNS. */
function requireHost(host: string): void {
  if (!isHost(host)) throw notAllowed(JSON.stringify(host.slice(0, MAX_QUOTED_CHARACTERS)));
  if (isIP(host) === 0 && /(^|\.)(\d+|0x[0-9a-f]*)\.?$/i.test(host)) throw notAllowed(host);
}

const MAX_QUOTED_CHARACTERS = 80;

function notAllowed(what: string): NodeAddressRefused {
  return new NodeAddressRefused(`address not allowed: ${what}`);
}

/** Every address of a name, from the system's resolver. */
export async function resolveByDns(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true, verbatim: false })).map(({ address }) => address);
}
