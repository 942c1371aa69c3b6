import { isIPv6, type Socket } from "node:net";
import { canonicalAddress, ipv6Groups } from "@sluice/client/internal/config/address-list";
import type { Limits } from "../config/sections/limits.ts";
import type { EdgeRules } from "./edge-rules.ts";

/**
 * Closes connections of an address that has too many and returns false for them; a trusted proxy has
 * no limit. IPv6 addresses are counted by their /64, the network of one host.
 */
export function connectionCap(
  { limits, edge }: { readonly limits: Pick<Limits, "maxConnectionsPerAddress">; readonly edge: EdgeRules },
  onRefused: () => void,
): (socket: Socket) => boolean {
  const counts = new Map<string, number>();
  return (socket) => {
    const address = canonicalAddress(socket.remoteAddress ?? "");
    if (edge.isTrustedProxy(address)) return true;
    const key = networkOf(address);
    const count = (counts.get(key) ?? 0) + 1;
    if (count > limits.maxConnectionsPerAddress) {
      onRefused();
      socket.destroy();
      return false;
    }
    counts.set(key, count);
    socket.once("close", () => {
      const left = (counts.get(key) ?? 1) - 1;
      if (left === 0) counts.delete(key);
      else counts.set(key, left);
    });
    return true;
  };
}

/** The first four groups of an IPv6 address, or an IPv4 address in its usual form, whatever its spelling. */
export function networkOf(address: string): string {
  const plain = canonicalAddress(address);
  if (!isIPv6(plain)) return plain;
  const groups = ipv6Groups(plain).slice(0, 4);
  return groups.map((group) => group.toString(16)).join(":");
}
