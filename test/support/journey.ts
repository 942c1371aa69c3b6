import { eventually } from "./eventually.ts";
import type { MetricSamples } from "./taken-path.ts";

/** The paths of one client's requests, according to the gateway's counters. */
export interface Journey {
  /** The carriers of the sessions that started: `WebSocket pass-through`, `SPDY pass-through`. */
  readonly ways: readonly string[];
  /** New WebSockets that were refused, after which the client tried again: `403`. */
  readonly refusals: readonly string[];
  /** Sessions that fell back to SPDY after a node's refusal, which the client did not notice. */
  readonly fallbacks: number;
}

/**
 * Runs `action`, and reads from the gateway's counters which paths its requests took. Exact while
 * no other client uses the gateway.
 */
export async function journeyOf(
  read: () => Promise<MetricSamples>,
  action: () => Promise<void>,
): Promise<Journey> {
  const before = await read();
  await action();
  const isOver = async () =>
    sumOf(await read(), /^apiserver_streaming_active_connections\{/) <=
    sumOf(before, /^apiserver_streaming_active_connections\{/);
  await eventually("the client's sessions are over", isOver);
  return journeyBetween(before, await read());
}

function journeyBetween(before: MetricSamples, after: MetricSamples): Journey {
  const grown = (name: RegExp) => sumOf(after, name) - sumOf(before, name);
  const plans = new Set<string>();
  const refusals = new Set<string>();
  for (const [name, value] of after) {
    const [, plan, code] =
      /^sluice_streaming_requests_total\{.*plan="([^"]*)",code="(\d+)"\}$/.exec(name) ?? [];
    if (plan === undefined || code === undefined || value === (before.get(name) ?? 0)) continue;
    if (code === "101") plans.add(plan);
    else refusals.add(code);
  }
  const transport =
    grown(/^num_ws_(?:remote_command_v5|port_forward_v2)_total\{type="success"\}/) > 0 ? "WebSocket" : "SPDY";
  return {
    ways: [...plans].map((plan) => `${transport} ${plan}`),
    refusals: [...refusals],
    fallbacks: grown(/^sluice_node_fallbacks_total\{/),
  };
}

function sumOf(samples: MetricSamples, name: RegExp): number {
  return Array.from(samples).reduce((sum, [sample, value]) => sum + (name.test(sample) ? value : 0), 0);
}

/** `WebSocket refused (403), then SPDY pass-through`. */
export function describeJourney({ ways, refusals, fallbacks }: Journey): string {
  const refused = refusals.length > 0 ? `WebSocket refused (${refusals.join(", ")}), then ` : "";
  const fellBack = fallbacks > 0 ? ", the node having refused WebSocket" : "";
  return `${refused}${ways.join(" and ") || "nothing"}${fellBack}`;
}
