import { describe, expect, it } from "vitest";
import { planAfterRefusal } from "../../../src/legs/agent/agent-leg.ts";
import type { NodeCapability } from "../../../src/nodes/node-capability.ts";
import type { ClientOffer } from "../../../src/sessions/client-offer.ts";
import {
  type AdmissionReason,
  PLAN_REASONS,
  type Plan,
  type PlanGates,
  planAfter,
  planFor,
  planForRuntime,
  planForWebSocketOnly,
  planThroughApiServer,
} from "../../../src/sessions/plan.ts";
import type { Subresource } from "../../../src/sessions/streaming-request.ts";

const V5 = "v5.channel.k8s.io";
const TUNNEL = "SPDY/3.1+portforward.k8s.io";
const ALIAS = "v2.portforward.k8s.io";

const webSocket = (...protocols: string[]): ClientOffer => ({ transport: "websocket", protocols });
const spdy = (...protocols: string[]): ClientOffer => ({ transport: "spdy", protocols });

const ALL_ON: PlanGates = {
  TranslateStreamCloseWebsocketRequests: true,
  PortForwardWebsockets: true,
  ExtendWebSocketsToKubelet: true,
};
const without = (gate: keyof PlanGates): PlanGates => ({ ...ALL_ON, [gate]: false });

const DECLARES = ["SomethingElse", "ExtendWebSocketsToKubelet"];

/** The part of a plan that the tables name; "fields" below holds the rest, by reason. */
type Route = Pick<Plan, "kind" | "reason">;

const passThrough = (reason: Plan["reason"]): Route => ({ kind: "pass-through", reason });
const translate: Route = { kind: "translate", reason: "node-speaks-spdy-only" };
const tunnel: Route = { kind: "tunnel", reason: "node-speaks-spdy-only" };
const direct = passThrough("node-speaks-websocket");
const runtime = passThrough("runtime-speaks-it");
const gateOff = passThrough("gate-off");
const spdyAsIs = passThrough("client-speaks-spdy");

type Row = [offer: ClientOffer, declared: readonly string[], gates: PlanGates, plan: Route];

/** The same for exec and attach. TestExecRESTConnect and TestAttachRESTConnect ask gate by node. */
const COMMAND_ROWS: Record<string, Row> = {
  "v5, node declares nothing": [webSocket(V5), [], ALL_ON, translate],
  "v5, node declares something else": [webSocket(V5), ["SomethingElse"], ALL_ON, translate],
  "v5, the feature in another case is another feature": [
    webSocket(V5),
    ["extendwebsocketstokubelet"],
    ALL_ON,
    translate,
  ],
  "v5, node declares the feature": [webSocket(V5), DECLARES, ALL_ON, direct],
  "v5 behind v4: still one that can be translated": [
    webSocket("v4.channel.k8s.io", V5),
    [],
    ALL_ON,
    translate,
  ],
  "v5 in another case is no v5": [webSocket("V5.channel.k8s.io"), [], ALL_ON, runtime],
  "v5, Extend off, node declares it": [
    webSocket(V5),
    DECLARES,
    without("ExtendWebSocketsToKubelet"),
    translate,
  ],
  "v5, Translate off, node declares nothing": [
    webSocket(V5),
    [],
    without("TranslateStreamCloseWebsocketRequests"),
    gateOff,
  ],
  "v5, Translate off, node declares it": [
    webSocket(V5),
    DECLARES,
    without("TranslateStreamCloseWebsocketRequests"),
    gateOff,
  ],
  "v5, PortForward off changes nothing": [webSocket(V5), [], without("PortForwardWebsockets"), translate],
  v4: [webSocket("v4.channel.k8s.io"), [], ALL_ON, runtime],
  "v4 on a node that declares the feature": [webSocket("v4.channel.k8s.io"), DECLARES, ALL_ON, runtime],
  v1: [webSocket("channel.k8s.io"), [], ALL_ON, runtime],
  base64: [webSocket("base64.channel.k8s.io"), [], ALL_ON, runtime],
  "v4 base64": [webSocket("v4.base64.channel.k8s.io"), [], ALL_ON, runtime],
  "no subprotocol": [webSocket(), [], ALL_ON, runtime],
  "the tunnel's name is nothing to a command": [webSocket(TUNNEL), [], ALL_ON, runtime],
  "SPDY v4": [spdy("v4.channel.k8s.io"), [], ALL_ON, spdyAsIs],
  "SPDY that offers v5, as client-go does": [spdy(V5, "v4.channel.k8s.io"), [], ALL_ON, spdyAsIs],
  "SPDY on a node that declares the feature": [spdy("v4.channel.k8s.io"), DECLARES, ALL_ON, spdyAsIs],
};

/** TestPortForwardRESTConnect. */
const PORT_FORWARD_ROWS: Record<string, Row> = {
  "tunnel, node declares nothing": [webSocket(TUNNEL), [], ALL_ON, tunnel],
  "the KEP's name, node declares nothing": [webSocket(ALIAS), [], ALL_ON, tunnel],
  "another SPDY protocol in a tunnel": [webSocket("SPDY/3.1+v9.portforward.k8s.io"), [], ALL_ON, tunnel],
  "tunnel behind a name that nobody knows": [webSocket("UNKNOWN", TUNNEL), [], ALL_ON, tunnel],
  "tunnel, node declares the feature": [webSocket(TUNNEL), DECLARES, ALL_ON, direct],
  "the KEP's name, node declares the feature: no node knows it": [
    webSocket(ALIAS),
    DECLARES,
    ALL_ON,
    { kind: "tunnel", reason: "node-knows-other-name" },
  ],
  "both names, node declares the feature": [webSocket(ALIAS, TUNNEL), DECLARES, ALL_ON, direct],
  "tunnel, Extend off, node declares it": [
    webSocket(TUNNEL),
    DECLARES,
    without("ExtendWebSocketsToKubelet"),
    tunnel,
  ],
  "tunnel, PortForward off": [webSocket(TUNNEL), [], without("PortForwardWebsockets"), gateOff],
  "tunnel, Translate off changes nothing": [
    webSocket(TUNNEL),
    [],
    without("TranslateStreamCloseWebsocketRequests"),
    tunnel,
  ],
  "prefix without suffix": [webSocket("SPDY/3.1+portforward.example.com"), [], ALL_ON, runtime],
  "suffix without prefix": [webSocket("portforward.k8s.io"), [], ALL_ON, runtime],
  "legacy v4": [webSocket("v4.channel.k8s.io"), [], ALL_ON, runtime],
  "legacy base64": [webSocket("v4.base64.channel.k8s.io"), [], ALL_ON, runtime],
  "legacy without a name": [webSocket(), [], ALL_ON, runtime],
  "v5 is nothing to a port-forward": [webSocket(V5), [], ALL_ON, runtime],
  SPDY: [spdy("portforward.k8s.io"), [], ALL_ON, spdyAsIs],
};

const TABLES: readonly [Subresource, Record<string, Row>][] = [
  ["exec", COMMAND_ROWS],
  ["attach", COMMAND_ROWS],
  ["portforward", PORT_FORWARD_ROWS],
];

const nodeThat = (declared: readonly string[], more: Partial<NodeCapability> = {}): NodeCapability => ({
  declaresWebSocket: declared.includes("ExtendWebSocketsToKubelet"),
  mode: "auto",
  avoidedPaths: [],
  ...more,
});

const held = passThrough("node-held-to-websocket");
const heldToSpdy = { command: "node-held-to-spdy", failed: "node-failed-at-websocket" } as const;

/** Mode and memory change nothing for clients that pass through anyway. */
const LEARNED_ROWS: Record<
  string,
  [node: Partial<NodeCapability>, declared: readonly string[], Plan["reason"]]
> = {
  "declared, mode spdy": [{ mode: "spdy" }, DECLARES, heldToSpdy.command],
  "not declared, mode websocket": [{ mode: "websocket" }, [], "node-held-to-websocket"],
  "declared, mode websocket": [{ mode: "websocket" }, DECLARES, "node-held-to-websocket"],
  "declared, both paths failed": [{ avoidedPaths: ["command", "tunnel"] }, DECLARES, heldToSpdy.failed],
  "mode websocket, both paths failed": [
    { mode: "websocket", avoidedPaths: ["command", "tunnel"] },
    [],
    heldToSpdy.failed,
  ],
  "not declared, both paths failed": [{ avoidedPaths: ["command", "tunnel"] }, [], "node-speaks-spdy-only"],
};

describe("plan by what is held of the node", () => {
  for (const [name, [more, declared, reason]] of Object.entries(LEARNED_ROWS)) {
    const isPassed = reason === held.reason;
    it.each([
      ["exec", V5, isPassed ? "pass-through" : "translate"],
      ["portforward", TUNNEL, isPassed ? "pass-through" : "tunnel"],
    ] as const)(`${name}: %s`, (subresource, protocol, kind) => {
      const plan = planFor(subresource, webSocket(protocol), nodeThat(declared, more), ALL_ON);
      expect(plan).toMatchObject({ kind, reason });
    });
    it(`${name}: other clients pass through as ever`, () => {
      const node = nodeThat(declared, more);
      expect(planFor("exec", webSocket("v4.channel.k8s.io"), node, ALL_ON)).toMatchObject(runtime);
      expect(planFor("exec", spdy("v4.channel.k8s.io"), node, ALL_ON)).toMatchObject(spdyAsIs);
      const isOff = without("ExtendWebSocketsToKubelet");
      expect(planFor("exec", webSocket(V5), node, isOff)).toMatchObject(translate);
    });
  }

  it("the paths fail apart from each other", () => {
    const node = nodeThat(DECLARES, { avoidedPaths: ["tunnel"] });
    expect(planFor("attach", webSocket(V5), node, ALL_ON)).toMatchObject(direct);
    expect(planFor("portforward", webSocket(TUNNEL), node, ALL_ON).reason).toBe(heldToSpdy.failed);
  });
});

const bridge = (reason: Plan["reason"]): Route => ({ kind: "bridge", reason });
const spdyBridge = bridge("spdy-over-websocket-hop");
const olderBridge = bridge("older-websocket-over-hop");
const hopPasses = passThrough("only-websocket-passes");

const HOP_ROWS: Record<string, [subresource: Subresource, offer: ClientOffer, plan: Route]> = {
  "SPDY exec": ["exec", spdy("v4.channel.k8s.io"), spdyBridge],
  "SPDY attach": ["attach", spdy(V5, "v4.channel.k8s.io"), spdyBridge],
  "SPDY port-forward": ["portforward", spdy("portforward.k8s.io"), spdyBridge],
  v5: ["exec", webSocket(V5), hopPasses],
  "v5 among others": ["attach", webSocket("v4.channel.k8s.io", V5), hopPasses],
  v4: ["exec", webSocket("v4.channel.k8s.io"), olderBridge],
  "base64 v1": ["attach", webSocket("base64.channel.k8s.io"), olderBridge],
  "no subprotocol": ["exec", webSocket(), olderBridge],
  tunnel: ["portforward", webSocket(TUNNEL), hopPasses],
  "the KEP's tunnel": ["portforward", webSocket(ALIAS), bridge("node-knows-other-name")],
  "both names of the tunnel": ["portforward", webSocket(ALIAS, TUNNEL), hopPasses],
  "legacy port-forward": ["portforward", webSocket("v4.channel.k8s.io"), olderBridge],
  "v5 for a port-forward": ["portforward", webSocket(V5), olderBridge],
};

describe("plan where only WebSocket passes", () => {
  it.each(Object.entries(HOP_ROWS))("%s", (_name, [subresource, offer, plan]) => {
    expect(planForWebSocketOnly(subresource, offer)).toMatchObject(plan);
    const allOff: PlanGates = {
      TranslateStreamCloseWebsocketRequests: false,
      PortForwardWebsockets: false,
      ExtendWebSocketsToKubelet: false,
    };
    for (const gates of [ALL_ON, allOff]) {
      const node = nodeThat([], { mode: "websocket-only", avoidedPaths: ["command", "tunnel"] });
      expect(planFor(subresource, offer, node, gates)).toMatchObject(plan);
    }
    expect(planAfter(planForWebSocketOnly(subresource, offer), subresource)).toBeUndefined();
  });
});

describe("plan after a refusal", () => {
  it.each([
    ["declared", {}],
    ["held", { mode: "websocket" }],
  ] as const)("is SPDY where the client's own protocol was tried because of the node: %s", (_name, more) => {
    for (const [subresource, protocol, kind] of [
      ["exec", V5, "translate"],
      ["portforward", TUNNEL, "tunnel"],
    ] as const) {
      const plan = planFor(subresource, webSocket(protocol), nodeThat(DECLARES, more), ALL_ON);
      expect(planAfter(plan, subresource)).toMatchObject({ kind, reason: heldToSpdy.failed });
    }
  });

  it("is none where every other plan was as good as this", () => {
    for (const [subresource, rows] of TABLES) {
      for (const [name, [offer, declared, gates, { reason }]] of Object.entries(rows)) {
        const plan = planFor(subresource, offer, nodeThat(declared), gates);
        if (reason !== direct.reason) expect(planAfter(plan, subresource), name).toBeUndefined();
      }
    }
  });
});

function check(subresource: Subresource, rows: Record<string, Row>): void {
  for (const [name, [offer, declared, gates, plan]] of Object.entries(rows)) {
    it(name, () => {
      expect(planFor(subresource, offer, nodeThat(declared), gates)).toMatchObject(plan);
    });
  }
}

describe("plan of exec", () => check("exec", COMMAND_ROWS));
describe("plan of attach", () => check("attach", COMMAND_ROWS));
describe("plan of portforward", () => check("portforward", PORT_FORWARD_ROWS));

const RUNTIME_ROWS: Record<
  string,
  [subresource: Subresource, offer: ClientOffer, isGateOn: boolean, plan: Route]
> = {
  "v5 exec": ["exec", webSocket(V5), true, { kind: "translate", reason: "runtime-speaks-spdy" }],
  "v5 attach": ["attach", webSocket(V5), true, { kind: "translate", reason: "runtime-speaks-spdy" }],
  "v5, gate off": ["exec", webSocket(V5), false, gateOff],
  "the tunnel": ["portforward", webSocket(TUNNEL), true, { kind: "tunnel", reason: "runtime-speaks-spdy" }],
  "the tunnel by the KEP's name": [
    "portforward",
    webSocket(ALIAS),
    true,
    { kind: "tunnel", reason: "runtime-speaks-spdy" },
  ],
  "the tunnel, gate off": ["portforward", webSocket(TUNNEL), false, gateOff],
  "v4 over WebSocket": ["exec", webSocket("v4.channel.k8s.io"), true, runtime],
  "no subprotocol": ["exec", webSocket(), true, runtime],
  "legacy port-forward": ["portforward", webSocket("v4.channel.k8s.io"), true, runtime],
  "SPDY exec": ["exec", spdy("v4.channel.k8s.io"), true, spdyAsIs],
  "SPDY port-forward": ["portforward", spdy("portforward.k8s.io"), false, spdyAsIs],
};

describe("plan in front of a container runtime", () => {
  it.each(Object.entries(RUNTIME_ROWS))("%s", (_name, [subresource, offer, isGateOn, plan]) => {
    expect(planForRuntime(subresource, offer, { ExtendWebSocketsToKubelet: isGateOn })).toMatchObject(plan);
  });
});

const ADMISSION_REASONS: readonly AdmissionReason[] = [
  "admission-judges-it",
  "admission-unknown",
  "admission-always",
];

const tried = { path: "node", offersNewProtocol: true, countedAs: "new-protocol" } as const;
const overSpdy = { ...tried, offersNewProtocol: false };
const unchanged = { ...overSpdy, countedAs: "other" } as const;
const overHop = { path: "websocket-hop", offersNewProtocol: true, countedAs: "other" } as const;
const throughApiServer = { ...unchanged, path: "api-server" } as const;

/** The fields of plans to nodes and API servers; "node-knows-other-name" is also a bridge's. */
const FIELDS: Record<Plan["reason"], Omit<Plan, "kind" | "reason" | "statusStyle">> = {
  "node-speaks-websocket": tried,
  "node-held-to-websocket": tried,
  "node-speaks-spdy-only": overSpdy,
  "node-held-to-spdy": overSpdy,
  "node-failed-at-websocket": overSpdy,
  "node-knows-other-name": overSpdy,
  "runtime-speaks-spdy": { ...overSpdy, path: "runtime" },
  "client-speaks-spdy": unchanged,
  "runtime-speaks-it": unchanged,
  "gate-off": { ...unchanged, countedAs: "gated" },
  "only-websocket-passes": { ...overHop, countedAs: "new-protocol" },
  "spdy-over-websocket-hop": overHop,
  "older-websocket-over-hop": overHop,
  "upstream-refused-websocket": throughApiServer,
  "admission-judges-it": throughApiServer,
  "admission-unknown": throughApiServer,
  "admission-always": throughApiServer,
};

function everyPlan(): Plan[] {
  return [
    ...TABLES.flatMap(([subresource, rows]) =>
      Object.values(rows).map(([offer, declared, gates]) =>
        planFor(subresource, offer, nodeThat(declared), gates),
      ),
    ),
    ...Object.values(LEARNED_ROWS).map(([more, declared]) =>
      planFor("exec", webSocket(V5), nodeThat(declared, more), ALL_ON),
    ),
    ...Object.values(HOP_ROWS).map(([subresource, offer]) => planForWebSocketOnly(subresource, offer)),
    ...Object.values(RUNTIME_ROWS).map(([subresource, offer, ExtendWebSocketsToKubelet]) =>
      planForRuntime(subresource, offer, { ExtendWebSocketsToKubelet }),
    ),
    // The agent's, after its API server refused a bridge.
    ...["exec", "portforward"].flatMap(
      (subresource) =>
        planAfterRefusal(planForWebSocketOnly(subresource as Subresource, spdy("v4.channel.k8s.io"))) ?? [],
    ),
    ...ADMISSION_REASONS.map(planThroughApiServer),
  ];
}

describe("fields", () => {
  it.each(
    everyPlan().map((plan) => [`${plan.kind} to ${plan.path}: ${plan.reason}`, plan] as const),
  )("%s", (_name, { kind, reason, ...fields }) => {
    const expected = kind === "bridge" ? { ...FIELDS[reason], path: "websocket-hop" } : FIELDS[reason];
    expect(fields).toEqual({
      ...expected,
      ...(kind === "bridge" && { offersNewProtocol: true }),
      ...(fields.path === "runtime" && { path: "runtime" }),
      statusStyle: reason === "runtime-speaks-spdy" ? "kubelet" : "upstream",
    });
  });
});

describe("reasons", () => {
  it("each is reached by a row, and has a sentence", () => {
    expect(new Set(everyPlan().map(({ reason }) => reason))).toEqual(new Set(Object.keys(PLAN_REASONS)));
    for (const sentence of Object.values(PLAN_REASONS)) expect(sentence.length).toBeGreaterThan(20);
  });
});
