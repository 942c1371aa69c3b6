import { register } from "prom-client";
import manifest from "sluice/package.json" with { type: "json" };
import { describe, expect, it } from "vitest";
import { Metrics } from "../../../src/observability/metrics.ts";
import { type MeasuredPlan, SESSION_ENDS } from "../../../src/observability/streaming-labels.ts";

const TRANSLATE: MeasuredPlan = { kind: "translate", countedAs: "new-protocol" };
const TUNNEL: MeasuredPlan = { kind: "tunnel", countedAs: "new-protocol" };
const WS_PASS_THROUGH: MeasuredPlan = { kind: "pass-through", countedAs: "new-protocol" };
const SPDY_PASS_THROUGH: MeasuredPlan = { kind: "pass-through", countedAs: "other" };
const LEGACY: MeasuredPlan = { kind: "pass-through", countedAs: "other" };
const GATE_OFF: MeasuredPlan = { kind: "pass-through", countedAs: "gated" };

const report = {
  endedBy: "node",
  cause: "completed",
  code: 200,
  downstreamBytes: 0,
  upstreamBytes: 0,
} as const;

describe("metrics", () => {
  it("have Kubernetes' and the KEP's names, types and helps, from the start", async () => {
    const text = await newMetrics().expose();
    for (const [name, type, help] of [
      [
        "apiserver_stream_translator_requests_total",
        "counter",
        "Total number of requests that were handled by the StreamTranslatorProxy, which processes streaming RemoteCommand/V5",
      ],
      [
        "apiserver_stream_tunnel_requests_total",
        "counter",
        "Total number of requests that were handled by the StreamTunnelProxy, which processes streaming PortForward/V2",
      ],
      [
        "apiserver_websocket_streaming_requests_total",
        "counter",
        "Total number of WebSocket streaming requests (exec/attach/portforward) routed by the API server, labeled by subresource and proxy_type. proxy_type is proxied_to_kubelet when the kubelet handles the request directly; otherwise translated_at_apiserver.",
      ],
      [
        "apiserver_streaming_active_connections",
        "gauge",
        "Gauge of active streaming connections, to distinguish between connections proxied directly to the Kubelet vs. those that require protocol translation or tunneling at the API server.",
      ],
    ]) {
      expect(text).toContain(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`);
    }
    expect(text).toContain('num_ws_remote_command_v5_total{type="success"} 0\n');
    expect(text).toContain('num_ws_port_forward_v2_total{type="failure"} 0\n');
    expect(text).toContain(
      'apiserver_streaming_active_connections{subresource="exec",proxy_type="proxied"} 0\n',
    );
  });

  it("have every end that a session can have as 0, from the start, so that rates see the first", async () => {
    const ends = (await newMetrics().expose())
      .split("\n")
      .filter((line) => line.startsWith("sluice_streaming_sessions_ended_total{"));
    // Four paths for each of three subresources.
    expect(ends).toHaveLength(12 * SESSION_ENDS.length);
    expect(ends.every((line) => line.endsWith(" 0"))).toBe(true);
  });

  it("count a translated exec", async () => {
    const metrics = newMetrics();
    metrics.streamingRouted("exec", TRANSLATE, "websocket");
    metrics.streamingStarted("exec", TRANSLATE, 0.003);
    expect(await changed(metrics)).toEqual([
      'apiserver_websocket_streaming_requests_total{subresource="exec",proxy_type="translated_at_apiserver"} 1',
      'num_ws_remote_command_v5_total{type="success"} 1',
      'apiserver_streaming_active_connections{subresource="exec",proxy_type="translated_or_tunneled"} 1',
      'sluice_streaming_requests_total{subresource="exec",plan="translate",code="101"} 1',
      'sluice_streaming_handshake_duration_seconds_count{subresource="exec",plan="translate"} 1',
    ]);
    metrics.streamingEnded("exec", TRANSLATE, { ...report, downstreamBytes: 7, upstreamBytes: 5 }, 12);
    expect(await changed(metrics)).toEqual([
      'apiserver_stream_translator_requests_total{code="200"} 1',
      'apiserver_websocket_streaming_requests_total{subresource="exec",proxy_type="translated_at_apiserver"} 1',
      'num_ws_remote_command_v5_total{type="success"} 1',
      'sluice_streaming_requests_total{subresource="exec",plan="translate",code="101"} 1',
      'sluice_streaming_bytes_total{subresource="exec",direction="downstream"} 7',
      'sluice_streaming_bytes_total{subresource="exec",direction="upstream"} 5',
      'sluice_streaming_handshake_duration_seconds_count{subresource="exec",plan="translate"} 1',
      'sluice_streaming_session_duration_seconds_count{subresource="exec",plan="translate"} 1',
      'sluice_streaming_sessions_ended_total{subresource="exec",plan="translate",ended_by="node",cause="completed"} 1',
    ]);
  });

  const routed: { name: string; plan: MeasuredPlan; transport: string; proxyType: string | undefined }[] = [
    { name: "translate", plan: TRANSLATE, transport: "websocket", proxyType: "translated_at_apiserver" },
    { name: "tunnel", plan: TUNNEL, transport: "websocket", proxyType: "translated_at_apiserver" },
    {
      name: "a WebSocket node",
      plan: WS_PASS_THROUGH,
      transport: "websocket",
      proxyType: "proxied_to_kubelet",
    },
    {
      name: "an old WebSocket protocol",
      plan: LEGACY,
      transport: "websocket",
      proxyType: "proxied_to_kubelet",
    },
    { name: "a gate that is off", plan: GATE_OFF, transport: "websocket", proxyType: undefined },
    { name: "SPDY", plan: SPDY_PASS_THROUGH, transport: "spdy", proxyType: undefined },
  ];
  it.each(routed)("route $name as $proxyType", async ({ plan, transport, proxyType }) => {
    const metrics = newMetrics();
    metrics.streamingRouted("attach", plan, transport);
    expect(await changed(metrics)).toEqual(
      proxyType === undefined
        ? []
        : [`apiserver_websocket_streaming_requests_total{subresource="attach",proxy_type="${proxyType}"} 1`],
    );
  });

  it("count a tunnel by the node's answer, a translation by its end", async () => {
    const metrics = newMetrics();
    metrics.streamingStarted("portforward", TUNNEL, 0);
    metrics.streamingEnded("portforward", TUNNEL, report, 1);
    metrics.streamingRefused("portforward", TUNNEL, 403);
    metrics.streamingStarted("exec", TRANSLATE, 0);
    metrics.streamingEnded("exec", TRANSLATE, { ...report, code: 500, cause: "upstream-lost" }, 1);
    metrics.streamingRefused("exec", TRANSLATE, 502);
    expect((await changed(metrics)).filter((line) => /^(apiserver_stream_t|num_)/.test(line))).toEqual([
      'apiserver_stream_translator_requests_total{code="500"} 1',
      'apiserver_stream_translator_requests_total{code="502"} 1',
      'apiserver_stream_tunnel_requests_total{code="101"} 1',
      'apiserver_stream_tunnel_requests_total{code="403"} 1',
      'num_ws_remote_command_v5_total{type="success"} 1',
      'num_ws_remote_command_v5_total{type="failure"} 1',
      'num_ws_port_forward_v2_total{type="success"} 1',
      'num_ws_port_forward_v2_total{type="failure"} 1',
    ]);
  });

  it("count requests that were refused before a plan was made", async () => {
    const metrics = newMetrics();
    metrics.streamingRefused("exec", undefined, 403);
    expect(await changed(metrics)).toEqual([
      'sluice_streaming_requests_total{subresource="exec",plan="none",code="403"} 1',
    ]);
  });

  it("show running sessions' bytes, and never fewer when they end", async () => {
    const metrics = newMetrics();
    const running = [{ subresource: "exec" as const, downstreamBytes: 100, upstreamBytes: 1 }];
    metrics.observeRunningSessions(() => running);
    metrics.streamingStarted("exec", SPDY_PASS_THROUGH, 0);
    const line = 'sluice_streaming_bytes_total{subresource="exec",direction="downstream"} 100';
    expect(await changed(metrics)).toContain(line);
    expect(await changed(metrics)).toContain(line);
    running.pop();
    metrics.streamingEnded(
      "exec",
      SPDY_PASS_THROUGH,
      { ...report, downstreamBytes: 100, upstreamBytes: 1 },
      1,
    );
    expect(await changed(metrics)).toContain(line);
  });

  it("show the sessions that run now, by subresource", async () => {
    const metrics = newMetrics();
    const session = { subresource: "exec" as const, downstreamBytes: 0, upstreamBytes: 0 };
    const running = [session, session];
    metrics.observeRunningSessions(() => running);
    expect(await changed(metrics)).toEqual(['sluice_streaming_active_sessions{subresource="exec"} 2']);
    running.pop();
    expect(await changed(metrics)).toEqual(['sluice_streaming_active_sessions{subresource="exec"} 1']);
    running.pop();
    expect(await metrics.expose()).toContain('sluice_streaming_active_sessions{subresource="attach"} 0\n');
    expect(await changed(metrics)).toEqual([]);
  });

  it("name this release and the Kubernetes that it claims to be", async () => {
    expect(await newMetrics().expose()).toContain(
      `sluice_build_info{version="${manifest.version}",kubernetes_version="v1.36.0+sluice-${manifest.version}"} 1\n`,
    );
  });

  it("keep their label sets closed, whatever they are told", async () => {
    const metrics = newMetrics();
    for (const end of SESSION_ENDS) {
      metrics.streamingStarted("exec", TRANSLATE, 0);
      metrics.streamingEnded("exec", TRANSLATE, { ...report, ...end, code: Math.random() * 1e6 + 600 }, 1);
    }
    const text = (await changed(metrics)).join("\n");
    expect(text).toContain(
      `apiserver_stream_translator_requests_total{code="unknown"} ${SESSION_ENDS.length}`,
    );
    expect(text).toContain('ended_by="client",cause="stream-creation-timeout"} 1');
    const hostile = 'exec"}\nevil 1' as "exec";
    metrics.streamingEnded(hostile, TRANSLATE, report, 1);
    expect(await metrics.expose()).not.toMatch(/^evil/m);
  });

  it("live in a registry of their own", async () => {
    const [one, other] = [new Metrics(), newMetrics()];
    one.streamingRefused("exec", undefined, 500);
    expect(await changed(other)).toEqual([]);
    expect(await one.expose()).toContain("process_resident_memory_bytes");
    expect(await register.metrics()).toBe("\n");
  });
});

function newMetrics(): Metrics {
  return new Metrics({ withProcessMetrics: false });
}

/** Samples that are not zero, without buckets and sums. */
async function changed(metrics: Metrics): Promise<string[]> {
  const lines = (await metrics.expose()).split("\n");
  return lines.filter(
    (line) =>
      !line.startsWith("sluice_build_info") &&
      /^[^#].* (?!0$)\S+$/.test(line) &&
      !/_bucket\{|_sum\{/.test(line),
  );
}
