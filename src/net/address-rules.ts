import { isIP } from "node:net";
import { AddressList } from "@sluice/client/internal/config/address-list";
import { canonicalAddress } from "@sluice/client/internal/config/canonical-address";
import { embeddedAddresses, isTranslated } from "./translated-address.ts";

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
