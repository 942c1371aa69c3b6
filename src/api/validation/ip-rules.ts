import { isIPv6 } from "node:net";

export const NOT_AN_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/**
 * Kubernetes' lenient parser: IPv4 parts may have leading zeros (`010.0.0.1`); zones are refused.
 */
export function isLenientIP(value: string): boolean {
  if (value.includes(":")) return isIPv6(value) && !value.includes("%");
  const parts = value.split(".");
  return parts.length === 4 && parts.every((part) => /^\d{1,15}$/.test(part) && Number(part) <= 255);
}
