/** Host and port of an http or https URL. */
export function addressOfUrl(url: string): { host: string; port: number; isTls: boolean } {
  const { protocol, hostname, port } = new URL(url);
  const isTls = protocol === "https:";
  return {
    // URLs keep an IPv6 address's brackets; sockets do not accept them.
    host: hostname.replace(/^\[|\]$/g, ""),
    port: port === "" ? (isTls ? 443 : 80) : Number(port),
    isTls,
  };
}
