import { decodeProxyHeader } from "../../../../protocols/proxy-protocol/index.ts";

/** Whether a line of version 1 may name the client by this IPv4 address. */
export function isIPv4(address: string): boolean {
  return isAddressIn(`PROXY TCP4 ${address} 0.0.0.0 1 2\r\n`);
}

/** Whether a line of version 1 may name the client by this IPv6 address. */
export function isIPv6(address: string): boolean {
  return isAddressIn(`PROXY TCP6 ${address} :: 1 2\r\n`);
}

function isAddressIn(line: string): boolean {
  try {
    return decodeProxyHeader(Buffer.from(line, "latin1")) !== undefined;
  } catch {
    return false;
  }
}
