import { LOOPBACK } from "../config/address-list.ts";
import { UsageError } from "./usage-error.ts";

/** Throws UsageError, which says why, for an address that others than this machine could reach. */
export function requireLoopback(address: string, because: string): void {
  if (address === "localhost" || LOOPBACK.has(address)) return;
  throw new UsageError(`--address ${address}: ${because}, so it listens on loopback only (127.0.0.1, ::1)`);
}

/** Throws UsageError. `flag`: its name, for the message. */
export function parseListenPort(text: string, flag = "--port"): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new UsageError(`${flag} ${text}: must be a port between 0 (any free one) and 65535`);
}
