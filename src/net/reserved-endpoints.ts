import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { canonicalAddress, isLoopback } from "@sluice/client/internal/config/address-list";
import { embeddedAddresses } from "./address-rules.ts";

/** Resolves a name to its addresses. */
export type Resolve = (host: string) => Promise<readonly string[]>;

/** An address, a name or a listener's wildcard, with a port. */
export interface ReservedEndpoint {
  readonly host: string;
  readonly port: number;
}

interface ReservedEndpointsOptions {
  /** Called for each check, because listeners may get their port late. */
  readonly list: () => readonly ReservedEndpoint[];
  readonly resolve: Resolve;
  /** This machine's addresses; for tests. */
  readonly localAddresses?: () => readonly string[];
}

/**
 * Endpoints of API servers: the real one, and our own listeners. A Node object with such an address
 * would make us send our kubelet client certificate there (CVE-2022-3294). The port matters: control
 * planes' kubelets share the address.
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

  /** `address` is an IP address. Looks up names only if the port matches, and throws the lookup's errors. */
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

/** Every address that dialling this one may reach. */
function placesOf(address: string): string[] {
  const plain = canonicalAddress(address);
  // Connecting to the unspecified address reaches this machine.
  return isUnspecified(plain) ? ["127.0.0.1", "::1"] : [plain, ...embeddedAddresses(plain)];
}

function isUnspecified(address: string): boolean {
  return address === "0.0.0.0" || address === "::";
}

function addressesOfThisMachine(): readonly string[] {
  const found = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  return found.map(({ address }) => address);
}
