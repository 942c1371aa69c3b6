import { describe, expect, it } from "vitest";
import { planAfterRefusal } from "../../../src/legs/agent/plan-session.ts";
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

const passThrough = (reason: Plan["reason"]): Plan => ({ kind: "pass-through", reason });
const translate: Plan = { kind: "translate", reason: "node-speaks-spdy-only" };
const tunnel: Plan = { kind: "tunnel", reason: "node-speaks-spdy-only" };
const direct = passThrough("node-speaks-websocket");
const runtime = passThrough("runtime-speaks-it");
const gateOff = passThrough("gate-off");
const spdyAsIs = passThrough("client-speaks-spdy");

type Row = [offer: ClientOffer, declared: readonly string[], gates: PlanGates, plan: Plan];

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
      expect(plan).toEqual({ kind, reason });
    });
    it(`${name}: other clients pass through as ever`, () => {
      const node = nodeThat(declared, more);
      expect(planFor("exec", webSocket("v4.channel.k8s.io"), node, ALL_ON)).toEqual(runtime);
      expect(planFor("exec", spdy("v4.channel.k8s.io"), node, ALL_ON)).toEqual(spdyAsIs);
      const isOff = without("ExtendWebSocketsToKubelet");
      expect(planFor("exec", webSocket(V5), node, isOff)).toEqual(translate);
    });
  }

  it("the paths fail apart from each other", () => {
    const node = nodeThat(DECLARES, { avoidedPaths: ["tunnel"] });
    expect(planFor("attach", webSocket(V5), node, ALL_ON)).toEqual(direct);
    expect(planFor("portforward", webSocket(TUNNEL), node, ALL_ON).reason).toBe(heldToSpdy.failed);
  });
});

const bridge = (reason: Plan["reason"]): Plan => ({ kind: "bridge", reason });
const spdyBridge = bridge("spdy-over-websocket-hop");
const olderBridge = bridge("older-websocket-over-hop");
const hopPasses = passThrough("only-websocket-passes");

const HOP_ROWS: Record<string, [subresource: Subresource, offer: ClientOffer, plan: Plan]> = {
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
    expect(planForWebSocketOnly(subresource, offer)).toEqual(plan);
    const allOff: PlanGates = {
      TranslateStreamCloseWebsocketRequests: false,
      PortForwardWebsockets: false,
      ExtendWebSocketsToKubelet: false,
    };
    for (const gates of [ALL_ON, allOff]) {
      const node = nodeThat([], { mode: "websocket-only", avoidedPaths: ["command", "tunnel"] });
      expect(planFor(subresource, offer, node, gates)).toEqual(plan);
    }
    expect(planAfter(plan, subresource)).toBeUndefined();
  });
});

describe("plan after a refusal", () => {
  it("is SPDY where the client's own protocol was tried because of the node", () => {
    for (const plan of [direct, held]) {
      expect(planAfter(plan, "exec")).toEqual({ kind: "translate", reason: heldToSpdy.failed });
      expect(planAfter(plan, "portforward")).toEqual({ kind: "tunnel", reason: heldToSpdy.failed });
    }
  });

  it("is none where every other plan was as good as this", () => {
    for (const plan of [runtime, gateOff, spdyAsIs, translate, tunnel]) {
      expect(planAfter(plan, "exec")).toBeUndefined();
    }
  });
});

function check(subresource: Subresource, rows: Record<string, Row>): void {
  for (const [name, [offer, declared, gates, plan]] of Object.entries(rows)) {
    it(name, () => {
      expect(planFor(subresource, offer, nodeThat(declared), gates)).toEqual(plan);
    });
  }
}

describe("plan of exec", () => check("exec", COMMAND_ROWS));
describe("plan of attach", () => check("attach", COMMAND_ROWS));
describe("plan of portforward", () => check("portforward", PORT_FORWARD_ROWS));

const RUNTIME_ROWS: Record<
  string,
  [subresource: Subresource, offer: ClientOffer, isGateOn: boolean, plan: Plan]
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
    expect(planForRuntime(subresource, offer, { ExtendWebSocketsToKubelet: isGateOn })).toEqual(plan);
  });
});

const ADMISSION_REASONS: readonly AdmissionReason[] = [
  "admission-judges-it",
  "admission-unknown",
  "admission-always",
];

describe("reasons", () => {
  it("each is reached by a row, and has a sentence", () => {
    const reached = [
      ...[...Object.values(COMMAND_ROWS), ...Object.values(PORT_FORWARD_ROWS)].map(
        ([, , , { reason }]) => reason,
      ),
      ...Object.values(RUNTIME_ROWS).map(([, , , { reason }]) => reason),
      ...Object.values(LEARNED_ROWS).map(([, , reason]) => reason),
      ...Object.values(HOP_ROWS).map(([, , { reason }]) => reason),
      // The agent's, behind a bridge that its API server refused.
      planAfterRefusal(spdyBridge)?.reason,
      ...ADMISSION_REASONS.map((reason) => planThroughApiServer(reason).reason),
    ];
    expect(new Set(reached)).toEqual(new Set(Object.keys(PLAN_REASONS)));
    for (const sentence of Object.values(PLAN_REASONS)) expect(sentence.length).toBeGreaterThan(20);
  });
});
