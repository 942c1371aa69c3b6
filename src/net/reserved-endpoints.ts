import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { isLoopback } from "../config/address-list.ts";
import { canonicalAddress } from "../config/canonical-address.ts";
import { embeddedAddresses } from "./translated-address.ts";

/** The addresses of a name. */
export type Resolve = (host: string) => Promise<readonly string[]>;

/** An address or name, or a listener's wildcard, and a port. */
export interface ReservedEndpoint {
  readonly host: string;
  readonly port: number;
}

export interface ReservedEndpointsOptions {
  /** Asked at every look, so that listeners may get their port late. */
  readonly list: () => readonly ReservedEndpoint[];
  readonly resolve: Resolve;
  /** This machine's addresses; for tests. */
  readonly localAddresses?: () => readonly string[];
}

/**
 * Address and port of API servers: of the real one, and of our own listeners. A Node object that names one would have our client
 * certificate, meant for kubelets, speak to it (CVE-2022-3294). The port counts: kubelets of control planes share the address.
 */
export class ReservedEndpoints {
  readonly #list: () => readonly ReservedEndpoint[];
  readonly #resolve: Resolve;
  readonly #localAddresses: () => readonly string[];

  constructor({ list, resolve, localAddresses = addressesOfThisMachine }: ReservedEndpointsOptions) {
    this.#list = list;
    this.#resolve = resolve;
    this.#localAddresses = localAddresses;
  }

  /** `address` is an IP address. Names are looked up only where the port is the same. Throws what the lookup throws. */
  async has(address: string, port: number): Promise<boolean> {
    const places = placesOf(address);
    for (const { host } of this.#list().filter((endpoint) => endpoint.port === port)) {
      const listed = canonicalAddress(host);
      if (isUnspecified(listed)) {
        if (places.some((place) => this.#isOfThisMachine(place))) return true;
      } else {
        const reserved = isIP(listed) === 0 ? await this.#resolve(host) : [listed];
        if (reserved.some((other) => places.includes(canonicalAddress(other)))) return true;
      }
    }
    return false;
  }

  #isOfThisMachine(address: string): boolean {
    return isLoopback(address) || this.#localAddresses().some((local) => canonicalAddress(local) === address);
  }
}

/** Every address that is reached by dialling this one. */
function placesOf(address: string): string[] {
  const plain = canonicalAddress(address);
  // To connect to the unspecified address is to connect to this machine.
  return isUnspecified(plain) ? ["127.0.0.1", "::1"] : [plain, ...embeddedAddresses(plain)];
}

function isUnspecified(address: string): boolean {
  return address === "0.0.0.0" || address === "::";
}

function addressesOfThisMachine(): readonly string[] {
  const found = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  return found.map(({ address }) => address);
}
