import { describe, expect, it } from "vitest";
import type { NodeEndpoint } from "../../../src/cluster/locate.ts";
import type { StreamingMode } from "../../../src/config/sections/kubelet.ts";
import { KnownNodes } from "../../../src/nodes/known-nodes.ts";
import type { LogFields } from "../../../src/observability/logger.ts";
import { Metrics } from "../../../src/observability/metrics.ts";

const MINUTE = 60_000;

function nodeNamed(name: string, more: Partial<NodeEndpoint> = {}): NodeEndpoint {
  const declaredFeatures = ["ExtendWebSocketsToKubelet"];
  return {
    name,
    host: "10.0.0.1",
    port: 10_250,
    declaredFeatures,
    streaming: undefined,
    incarnation: "1",
    ...more,
  };
}

function start(modes: readonly (readonly [string, StreamingMode])[] = [], mode: StreamingMode = "auto") {
  const clock = { nowMs: 0, now: () => clock.nowMs };
  const metrics = new Metrics({ withProcessMetrics: false });
  const lines: unknown[] = [];
  const log = (level: string) => (fields: LogFields, message: string) =>
    void lines.push({ level, ...fields, message });
  const nodes = new KnownNodes({
    streaming: { mode, nodes: new Map(modes), retryFailedPathMs: MINUTE, maxRetryFailedPathMs: 4 * MINUTE },
    circuit: { failures: 2, retryMs: 5_000, maxRetryMs: MINUTE },
    maxNodes: 3,
    forgetAfterMs: 60 * MINUTE,
    clock,
    metrics: metrics.nodes,
    logger: { info: log("info"), warn: log("warn") },
  });
  const metric = async (name: string) =>
    (await metrics.expose()).split("\n").filter((line) => line.startsWith(name));
  return { nodes, clock, metric, lines };
}

describe("a path that failed", () => {
  const node = nodeNamed("a");

  it("is left out for a while, longer each time, and taken again when it works", () => {
    const { nodes, clock } = start();
    const pauses: number[] = [];
    for (let round = 0; round < 4; round++) {
      nodes.recordFailure(node, "command", "forbidden");
      expect(nodes.capabilityOf(node).avoidedPaths).toEqual(["command"]);
      const pauseMs = nodes.learnedOf(node)?.paths.command.retryInMs ?? 0;
      pauses.push(pauseMs / MINUTE);
      clock.nowMs += pauseMs;
      expect(nodes.capabilityOf(node).avoidedPaths).toEqual([]);
    }
    expect(pauses).toEqual([1, 2, 4, 4]);
    nodes.recordSuccess(node, "command");
    nodes.recordFailure(node, "command", "forbidden");
    expect(nodes.learnedOf(node)?.paths.command).toEqual({
      successes: 1,
      failures: 5,
      lastFailure: "forbidden",
      retryInMs: MINUTE,
    });
  });

  it("fails once for all sessions that were on their way", () => {
    const { nodes } = start();
    for (let session = 0; session < 50; session++) nodes.recordFailure(node, "tunnel", "no-answer");
    expect(nodes.learnedOf(node)?.paths.tunnel.retryInMs).toBe(MINUTE);
  });

  it("is forgotten with the kubelet that it failed on", () => {
    const { nodes } = start();
    nodes.recordFailure(node, "command", "forbidden");
    const restarted = nodeNamed("a", { incarnation: "2" });
    expect(nodes.capabilityOf(restarted).avoidedPaths).toEqual([]);
    expect(nodes.learnedOf(restarted)).toBeUndefined();
    nodes.admit(restarted).answered();
    expect(nodes.learnedOf(restarted)?.paths.command.failures).toBe(0);
    expect(nodes.size).toBe(1);
  });
});

describe("a node's mode", () => {
  it.each([
    ["nothing said", undefined, [], "auto"],
    ["an annotation", "spdy", [], "spdy"],
    ["the configuration above an annotation", "spdy", [["a", "websocket"]], "websocket"],
    ["an annotation that says nothing known", "fast", [], "auto"],
  ] as const)("%s", (_, streaming, modes, mode) => {
    expect(start(modes).nodes.capabilityOf(nodeNamed("a", { streaming })).mode).toBe(mode);
  });

  it("of all nodes gives way to an annotation", () => {
    const { nodes } = start([], "spdy");
    expect(nodes.capabilityOf(nodeNamed("a")).mode).toBe("spdy");
    expect(nodes.capabilityOf(nodeNamed("a", { streaming: "auto" })).mode).toBe("auto");
  });
});

describe("a node that can not be reached", () => {
  const node = nodeNamed("a");

  it("is refused at once, with the reason, until a trial reaches it", async () => {
    const { nodes, clock, metric } = start();
    for (let dial = 0; dial < 2; dial++) nodes.admit(node).failed("dial tcp 10.0.0.1:10250: i/o timeout");
    expect(() => nodes.admit(node)).toThrow(
      'error dialing backend: node "a" failed 2 times in a row and is not dialled for 5s: dial tcp 10.0.0.1:10250: i/o timeout',
    );
    expect(await metric("sluice_nodes_dead ")).toEqual(["sluice_nodes_dead 1"]);
    expect(await metric("sluice_node_circuit_refusals_total")).toEqual([
      "sluice_node_circuit_refusals_total 1",
    ]);
    expect(await metric("sluice_node_dial_failures_total")).toEqual(["sluice_node_dial_failures_total 2"]);
    clock.nowMs = 5_000;
    const trial = nodes.admit(node);
    expect(() => nodes.admit(node)).toThrow("is not dialled");
    trial.answered();
    nodes.admit(node).answered();
    expect(await metric("sluice_nodes_dead ")).toEqual(["sluice_nodes_dead 0"]);
  });

  it("has one log line when its circuit opens and one when it closes, whatever is asked in between", () => {
    const { nodes, clock, lines } = start();
    for (let dial = 0; dial < 4; dial++) {
      if (dial === 2) expect(() => nodes.admit(node)).toThrow("is not dialled");
      else if (dial === 3) clock.nowMs = 5_000;
      if (dial !== 2) nodes.admit(node).failed("refused");
    }
    const opened = { level: "warn", node: "a", failures: 2, reason: "refused", retryInMs: 5_000 };
    const message = "a node's circuit is open: it is not dialled";
    expect(lines).toEqual([{ ...opened, message }]);
    nodes.reportProbe("a", true, "");
    nodes.admit(node).answered();
    expect(lines.slice(1)).toEqual([
      { level: "info", node: "a", message: "a node's circuit is closed: it is dialled again" },
    ]);
  });

  it("is not logged as open for ever when it is forgotten", () => {
    const { nodes, lines } = start();
    nodes.reportProbe("a", false, "refused");
    for (const name of ["b", "c", "d"]) nodes.admit(nodeNamed(name)).answered();
    expect(lines).toMatchObject([{ level: "warn" }, { level: "info", node: "a" }]);
  });

  it("settles a ticket once", () => {
    const { nodes } = start();
    const ticket = nodes.admit(node);
    ticket.answered();
    ticket.failed("late");
    ticket.failed("late");
    expect(nodes.learnedOf(node)?.circuit.failures).toBe(0);
  });

  it("is believed dead when a probe says so, and alive again", () => {
    const { nodes } = start();
    nodes.reportProbe("a", false, "probe: connection refused");
    expect(() => nodes.admit(node)).toThrow("probe: connection refused");
    nodes.reportProbe("a", true, "");
    nodes.admit(node).answered();
  });
});

describe("memory of nodes", () => {
  it("is bounded: the one that was not asked for longest is forgotten", async () => {
    const { nodes, metric } = start();
    for (const name of ["a", "b", "c", "a", "d"])
      nodes.recordFailure(nodeNamed(name), "command", "forbidden");
    expect(nodes.size).toBe(3);
    expect(nodes.learnedOf(nodeNamed("b"))).toBeUndefined();
    expect(nodes.learnedOf(nodeNamed("a"))).toBeDefined();
    expect(await metric("sluice_nodes_remembered")).toEqual(["sluice_nodes_remembered 3"]);
    expect(await metric("sluice_nodes_avoiding_path")).toContain(
      'sluice_nodes_avoiding_path{path="command"} 3',
    );
  });

  it("ends with time", () => {
    const { nodes, clock } = start();
    nodes.recordSuccess(nodeNamed("a"), "tunnel");
    clock.nowMs = 61 * MINUTE;
    expect(nodes.learnedOf(nodeNamed("a"))).toBeUndefined();
    expect(nodes.size).toBe(0);
  });

  it("is not made by looking", () => {
    const { nodes } = start();
    nodes.capabilityOf(nodeNamed("a"));
    nodes.learnedOf(nodeNamed("a"));
    expect(nodes.size).toBe(0);
  });
});
