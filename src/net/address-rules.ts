import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import {
  AddressList,
  canonicalAddress,
  ipv4Of,
  ipv6Groups,
  isLoopback,
} from "@sluice/client/internal/config/address-list";

/** Addresses that are never a node's: this machine, link-local, cloud metadata, broadcast, multicast. */
const NEVER_A_NODE = new AddressList([
  "0.0.0.0/8",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "224.0.0.0/4",
  "255.255.255.255/32",
  "100.100.100.200/32", // Alibaba Cloud metadata
  "168.63.129.16/32", // Azure wire server
  "::/128",
  "::1/128",
  "fe80::/10",
  "ff00::/8",
  "fd00:ec2::254/128", // AWS metadata over IPv6
  "fd20:ce::254/128", // Google Cloud metadata over IPv6
  "fd00:c1::a9fe:a9fe/128", // Oracle Cloud metadata over IPv6
  "192.0.0.192/32", // Oracle Cloud metadata, first generation
]);

/** Decides which IP addresses may be dialled for Node objects and endpoints. */
export class AddressRules {
  readonly #allowed: AddressList;

  /** `allowed`: networks that are dialled although they are forbidden by default. */
  constructor(allowed: readonly string[]) {
    this.#allowed = new AddressList(allowed);
  }

  /**
   * True also for text that is not an IP address. A translated address is refused if the address behind
   * it is, even if the translated form is allowed.
   */
  refuses(address: string): boolean {
    const plain = canonicalAddress(address);
    if (isIP(plain) === 0) return true;
    if (embeddedAddresses(plain).some((inner) => NEVER_A_NODE.has(inner) && !this.#allowed.has(inner)))
      return true;
    return !this.#allowed.has(plain) && (NEVER_A_NODE.has(plain) || isTranslated(plain));
  }
}

/**
 * Prefixes whose packets a translator may forward to an IPv4 address: NAT64, 6to4, IPv4-compatible,
 * IPv4-translated, Teredo.
 */
const TRANSLATED = new AddressList([
  "64:ff9b::/96",
  "64:ff9b:1::/48",
  "2002::/16",
  "::/96",
  "::ffff:0:0:0/96",
  "2001::/32",
]);
const LOCAL_NAT64 = new AddressList(["64:ff9b:1::/48"]);

function isTranslated(address: string): boolean {
  return TRANSLATED.has(address);
}

/**
 * The IPv4 addresses that a translated address may lead to; none for other addresses. If a NAT64
 * prefix's length is unknown (RFC 8215), one for each length in RFC 6052.
 */
function embeddedAddresses(address: string): string[] {
  if (!isTranslated(address)) return [];
  const groups = ipv6Groups(canonicalAddress(address));
  if (groups[0] === 0x2002) return [ipv4Of(groups, 1)];
  // Teredo: the server's address, and the client's with all bits inverted (RFC 4380).
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
 * RFC 6052 prefixes of 48, 56 and 64 bits: the IPv4 address skips the eight bits after the 64th. A
 * result that begins with zero belongs to another length.
 */
function nat64Forms(groups: readonly number[]): string[] {
  const bytes = groups.flatMap((group) => [group >>> 8, group & 0xff]);
  const withoutReserved = [...bytes.slice(0, 8), ...bytes.slice(9)];
  return [6, 7, 8]
    .filter((start) => withoutReserved[start] !== 0)
    .map((start) => withoutReserved.slice(start, start + 4).join("."));
}

/** Resolves a name to its addresses. */
type Resolve = (host: string) => Promise<readonly string[]>;

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
