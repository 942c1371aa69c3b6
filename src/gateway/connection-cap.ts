import { isIPv6, type Server, type Socket } from "node:net";
import { plainAddress } from "../config/address-list.ts";

export interface ConnectionCapOptions {
  readonly maxConnectionsPerAddress: number;
  isExempt(address: string): boolean;
  onRefused(address: string): void;
}

/** Closes connections of an address that has too many, before any handshake. IPv6 addresses are counted by their /64: a host has one. */
export function capConnections(server: Server, options: ConnectionCapOptions): void {
  const counts = new Map<string, number>();
  server.on("connection", (socket: Socket) => {
    const address = plainAddress(socket.remoteAddress ?? "");
    if (options.isExempt(address)) return;
    const key = networkOf(address);
    const count = (counts.get(key) ?? 0) + 1;
    if (count > options.maxConnectionsPerAddress) {
      options.onRefused(address);
      socket.destroy();
      return;
    }
    counts.set(key, count);
    socket.once("close", () => {
      const left = (counts.get(key) ?? 1) - 1;
      if (left === 0) counts.delete(key);
      else counts.set(key, left);
    });
  });
}

/** The first four groups of an IPv6 address, an IPv4 address as it is. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : 8 - groups.length - after.length;
  return [...groups, ...Array<string>(Math.max(0, zeros)).fill("0"), ...after].slice(0, 4).join(":");
}
