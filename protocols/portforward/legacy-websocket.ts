import { parsePort } from "./stream-headers.ts";

/** Subprotocols of the port-forward that does not use SPDY; an empty one (none offered) counts as v4. */
export const LEGACY_SUBPROTOCOLS = ["v4.channel.k8s.io", "v4.base64.channel.k8s.io"] as const;

export const PORT_PREFIX_BYTES = 2;
/**
 * Ports of one legacy WebSocket port-forward: a channel number is one byte, and a port uses two.
 * Past it: 400.
 */
const MAX_PORTS = 128;

export type ParsedPorts =
  | { readonly ok: true; readonly ports: readonly number[] }
  | { readonly ok: false; readonly reason: string };

/**
 * The ports of a legacy port-forward: all values of the query parameter, separated by commas. API
 * servers name it `ports` and kubelets `port`; errors always say "port".
 */
export function parsePortsQuery(values: readonly string[]): ParsedPorts {
  if (values.length === 0) return { ok: false, reason: 'query parameter "port" is required' };
  const ports: number[] = [];
  for (const value of values) {
    if (value === "") return { ok: false, reason: 'query parameter "port" cannot be empty' };
    for (const text of value.split(",")) {
      const parsed = parsePort(text, value);
      if (!parsed.ok) return parsed;
      ports.push(parsed.port);
    }
  }
  if (ports.length > MAX_PORTS)
    return { ok: false, reason: `at most ${MAX_PORTS} ports can be forwarded at once` };
  return { ok: true, ports };
}

export function dataChannelOf(portIndex: number): number {
  return portIndex * 2;
}

export function errorChannelOf(portIndex: number): number {
  return portIndex * 2 + 1;
}

/** The first message of each channel: its port, little endian. */
export function encodePortPrefix(port: number): Uint8Array {
  return Uint8Array.of(port & 0xff, port >> 8);
}

export function decodePortPrefix(prefix: Uint8Array): number {
  return (prefix[0] ?? 0) | ((prefix[1] ?? 0) << 8);
}
