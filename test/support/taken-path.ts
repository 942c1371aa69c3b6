import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { eventually } from "./eventually.ts";

/** Every sample of a /metrics page by its full name, `name{label="value"}`. */
export type MetricSamples = ReadonlyMap<string, number>;

/** Uses its own connection: the server may close a kept one just as it is used again. */
export async function readMetricsOf(adminUrl: string): Promise<MetricSamples> {
  const request = get(new URL("/metrics", adminUrl), { agent: false });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return parseMetrics(await text(response));
}

export function parseMetrics(page: string): MetricSamples {
  const samples = new Map<string, number>();
  for (const line of page.split("\n").filter((candidate) => candidate !== "" && !candidate.startsWith("#"))) {
    const cut = line.lastIndexOf(" ");
    samples.set(line.slice(0, cut), Number(line.slice(cut + 1)));
  }
  return samples;
}

/**
 * The paths of requests: `WebSocket translate`, `SPDY pass-through`; several if there were several.
 */
export interface TakenPath {
  ways: readonly string[];
  /**
   * Answers other than 101, such as `403 x2`; a client that falls back to another protocol leaves
   * one.
   */
  refusals: readonly string[];
}

/**
 * Runs `action`, and reads from the gateway's own counters which path its requests took. Exact
 * while no other client uses the gateway.
 */
export async function pathTakenBy(
  read: () => Promise<MetricSamples>,
  action: () => Promise<void>,
): Promise<TakenPath> {
  const before = await read();
  await action();
  const path = describePath(before, await read());
  if (!path.ways.some((way) => way.endsWith("translate"))) return path;
  // kube-apiserver counts translations of sessions that are over, and the client may be quicker.
  await eventually(
    "the translator's counter says so too",
    async () =>
      sumOf(await read(), /^apiserver_stream_translator_requests_total\{/) >
      sumOf(before, /^apiserver_stream_translator_requests_total\{/),
  );
  return path;
}

function describePath(before: MetricSamples, after: MetricSamples): TakenPath {
  const grown = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
  const started = new Set<string>();
  const refusals: string[] = [];
  for (const name of after.keys()) {
    const labels = /^sluice_streaming_requests_total\{(.*)\}$/.exec(name)?.[1];
    if (labels === undefined || grown(name) === 0) continue;
    const { plan = "?", code = "?" } = Object.fromEntries(
      Array.from(labels.matchAll(/(\w+)="([^"]*)"/g), ([, label, value]) => [label, value]),
    );
    if (code === "101") started.add(plan);
    else refusals.push(`${code} x${grown(name)}`);
  }
  const webSockets = /^apiserver_websocket_streaming_requests_total\{/;
  const transport = sumOf(after, webSockets) > sumOf(before, webSockets) ? "WebSocket" : "SPDY";
  return { ways: [...started].map((plan) => `${transport} ${plan}`), refusals };
}

function sumOf(samples: MetricSamples, name: RegExp): number {
  return Array.from(samples).reduce((sum, [sample, value]) => sum + (name.test(sample) ? value : 0), 0);
}
