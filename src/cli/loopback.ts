import { isLoopback } from "@sluice/client/internal/config/address-list";
import { UsageError } from "./command.ts";

/** Throws UsageError, with the reason, for an address that other machines can reach. */
export function requireLoopback(address: string, because: string): void {
  if (address === "localhost" || isLoopback(address)) return;
  throw new UsageError(`--address ${address}: ${because}, so it listens on loopback only (127.0.0.1, ::1)`);
}
