import type { IncomingMessage } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import {
  type GatewayHarness,
  type HarnessOptions,
  startGatewayHarness,
} from "../../support/gateway-harness.ts";
import { listenRaw, openSocketCount } from "../../support/http/loopback.ts";
import { endExec, type KubeletScript, ScriptedKubelet, SUCCESS } from "../../support/scripted-kubelet.ts";
import { TunnelClient } from "../../support/tunnel-client.ts";
import { V5Client } from "../../support/v5-client.ts";
import { statusMessage, webSocketAnswer } from "../../support/websocket-node.ts";

const DECLARED = { declaredFeatures: ["ExtendWebSocketsToKubelet"] };
const MINUTE = 60_000;
const QUERY = "stdout=true";
const refusal = (status: string, body: string) =>
  `HTTP/1.1 ${status}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
const KUBELET_WITHOUT_RUNTIME = {
  kind: "Status",
  status: "Failure",
  reason: "InternalError",
  message: "Internal error occurred: error dialing backend: http: server gave HTTP response to HTTPS client",
  code: 500,
};

let harness: GatewayHarness;
let kubelet: ScriptedKubelet;
const clock = { nowMs: 0, now: () => clock.nowMs };

/** SPDY works; what WebSocket gets is the test's business. */
async function start(
  answerWebSocket: (request: IncomingMessage) => string | undefined,
  options: Partial<HarnessOptions> = {},
  script: KubeletScript = {},
): Promise<void> {
  clock.nowMs = 0;
  kubelet = new ScriptedKubelet({
    refuse: (request) => (request.method === "GET" ? answerWebSocket(request) : undefined),
    onStream: (name, _, session) => {
      if (name === "stdout") endExec(session, SUCCESS);
    },
    ...script,
  });
  harness = await startGatewayHarness({
    kubeletPort: await kubelet.listen(),
    nodeClock: clock,
    ...DECLARED,
    ...options,
  });
}

afterEach(async () => {
  await harness.close();
  await kubelet.close();
});

/** "ok", the failure that the session's Status tells, or the code of the HTTP answer. */
async function exec(): Promise<string> {
  const client = new V5Client(harness.authority, QUERY);
  try {
    await client.opened;
  } catch (error) {
    return (error as Error).message.replace("Unexpected server response: ", "");
  }
  const { status: words, closeCode } = await client.done;
  if (words === "" && closeCode === 1006) return "broken";
  const { status } = JSON.parse(words || "{}");
  return status === "Success" ? "ok" : String(status);
}

/** The methods of the requests that the node got since the last look: GET is WebSocket, POST is SPDY. */
function asked(): string {
  return kubelet.requests
    .splice(0)
    .map(({ method }) => method)
    .join(" ");
}

describe("a node that declares WebSocket and refuses it", () => {
  it.each([
    ["its runtime knows no v5", refusal("403 Forbidden", ""), "forbidden"],
    ["its hop knows no WebSocket", refusal("400 Bad Request", "Bad Request"), "bad-request"],
    ["its runtime is not reached", refusal("500 x", "error dialing backend: dial tcp: x"), "runtime-failed"],
  ])("%s: SPDY at once, and then first, until it is time to ask again", async (_, answer, cause) => {
    await start(() => answer);
    expect([await exec(), asked()]).toEqual(["ok", "GET POST"]);
    expect([await exec(), asked()]).toEqual(["ok", "POST"]);
    expect(await harness.metric("sluice_node_fallbacks_total")).toEqual([
      `sluice_node_fallbacks_total{subresource="exec",cause="${cause}"} 1`,
    ]);
    expect(await harness.metric("sluice_streaming_requests_total")).toEqual([
      'sluice_streaming_requests_total{subresource="exec",plan="translate",code="101"} 2',
    ]);
    clock.nowMs = MINUTE;
    expect([await exec(), asked()]).toEqual(["ok", "GET POST"]);
    clock.nowMs = 2 * MINUTE;
    expect([await exec(), asked()]).toEqual(["ok", "POST"]);
  });

  it("a tunnel is unwrapped, and exec is still tried as declared", async () => {
    await start(
      ({ url = "" }) => (url.startsWith("/portForward/") ? refusal("400 x", "websocket") : undefined),
      {},
      { protocol: "portforward.k8s.io" },
    );
    const tunnel = await TunnelClient.open(harness.authority, { speaksSpdy: true });
    expect([asked(), tunnel.protocol]).toEqual(["GET POST", "SPDY/3.1+portforward.k8s.io"]);
    tunnel.socket.close();
    await tunnel.closed;
    const { nodes } = harness.context;
    const [node] = harness.context.cluster.listNodes();
    expect(node?.metadata.name).toBe("node");
    expect(await harness.metric("sluice_nodes_avoiding_path")).toEqual([
      'sluice_nodes_avoiding_path{path="command"} 0',
      'sluice_nodes_avoiding_path{path="tunnel"} 1',
    ]);
    expect(nodes.size).toBe(1);
  });

  it("refuses SPDY as well: the last answer counts, and nothing is held against the path", async () => {
    await start(
      () => undefined,
      {},
      { refuse: () => refusal("500 x", "error dialing backend: dial tcp: x") },
    );
    expect([await exec(), asked()]).toEqual(["500", "GET POST"]);
    expect([await exec(), asked()]).toEqual(["500", "GET POST"]);
    expect(await harness.metric("sluice_node_fallbacks_total{")).toEqual([]);
  });

  it.each([
    ["404 Not Found", "pod does not exist", "404"],
    ["500 x", 'container not found ("main")', "500"],
    ["429 x", "maximum number of in-flight requests exceeded", "429"],
  ])("for the request's sake, %s: the client gets that, and it is asked once", async (line, body, code) => {
    await start(() => refusal(line, body));
    expect([await exec(), asked()]).toEqual([code, "GET"]);
    expect(await harness.metric("sluice_node_path_outcomes_total{")).toEqual([]);
  });

  it("is told SPDY by its configuration, and is never asked for WebSocket", async () => {
    const streaming = { ...MODES, nodes: new Map([["node", "spdy" as const]]) };
    await start(() => refusal("500 x", ""), { streaming });
    expect([await exec(), asked()]).toEqual(["ok", "POST"]);
  });
});

const MODES = {
  mode: "auto",
  nodes: new Map(),
  retryFailedPathMs: MINUTE,
  maxRetryFailedPathMs: MINUTE,
} as const;

describe("a node that lies", () => {
  it("accepts WebSocket without a way to its runtime: its word is passed on, and the next session goes over SPDY", async () => {
    await start((request) =>
      webSocketAnswer(request, [Buffer.of(0), statusMessage(KUBELET_WITHOUT_RUNTIME)]),
    );
    expect([await exec(), asked()]).toEqual(["Failure", "GET"]);
    expect([await exec(), asked()]).toEqual(["ok", "POST"]);
    expect(await harness.metric("sluice_node_path_outcomes_total{")).toEqual([
      'sluice_node_path_outcomes_total{path="command",result="failure",cause="failed-after-upgrade"} 1',
    ]);
    expect(harness.logLines.join("")).not.toContain("server gave HTTP response");
  });

  it.each([
    ["a command that fails without a word", { status: "Failure", reason: "NonZeroExitCode", message: "x" }],
    [
      "a command that is not there",
      {
        status: "Failure",
        reason: "InternalError",
        message: 'error executing command in container: exec: "websocket": not found',
      },
    ],
  ])("not: %s", async (_, status) => {
    await start((request) => webSocketAnswer(request, [statusMessage(status)]));
    expect([await exec(), asked()]).toEqual(["Failure", "GET"]);
    expect([await exec(), asked()]).toEqual(["Failure", "GET"]);
    expect(await harness.metric("sluice_node_path_outcomes_total{")).toEqual([
      'sluice_node_path_outcomes_total{path="command",result="success",cause=""} 2',
    ]);
  });

  it("says that it switched, to something else: no second attempt, and none of this kind for a while", async () => {
    await start(() => "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n");
    expect([await exec(), asked()]).toEqual(["500", "GET"]);
    expect([await exec(), asked()]).toEqual(["ok", "POST"]);
  });
});

describe("a node that flaps", () => {
  it("is asked as it declares whenever the pause is over, and the pause begins anew once it works", async () => {
    let isBroken = true;
    await start((request) =>
      isBroken
        ? refusal("403 Forbidden", "")
        : webSocketAnswer(request, [Buffer.from("\x01out"), statusMessage({ status: "Success" })]),
    );
    expect([await exec(), asked()]).toEqual(["ok", "GET POST"]);
    clock.nowMs += MINUTE;
    expect([await exec(), asked()]).toEqual(["ok", "GET POST"]);
    isBroken = false;
    clock.nowMs += 2 * MINUTE;
    expect([await exec(), asked()]).toEqual(["ok", "GET"]);
    isBroken = true;
    expect([await exec(), asked()]).toEqual(["ok", "GET POST"]);
    clock.nowMs += MINUTE;
    expect([await exec(), asked()]).toEqual(["ok", "GET POST"]);
  });
});

describe("a node that hangs or breaks off before it answers", () => {
  it("is silent: the client is told, nothing is asked twice, and the next session goes over SPDY", async () => {
    await start(() => undefined, { timeouts: { upgradeResponseMs: 50 } }, { isSilent: true });
    expect([await exec(), asked()]).toEqual(["500", "GET"]);
    expect([await exec(), asked()]).toEqual(["500", "POST"]);
    expect([await exec(), asked()]).toEqual(["500", "POST"]);
    // Three in a row: it is dead by now, for every path.
    expect([await exec(), asked()]).toEqual(["503", ""]);
    clock.nowMs = 5_000;
    expect([await exec(), asked()]).toEqual(["500", "POST"]);
    expect([await exec(), asked()]).toEqual(["503", ""]);
  });

  it("closes: nothing is asked twice", async () => {
    await start(() => "");
    expect([await exec(), asked()]).toEqual(["500", "GET"]);
    expect([await exec(), asked()]).toEqual(["ok", "POST"]);
    expect(await harness.metric("sluice_node_path_outcomes_total{")).toEqual([
      'sluice_node_path_outcomes_total{path="command",result="failure",cause="no-answer"} 1',
    ]);
  });
});

describe("a node that is gone", () => {
  it("before the session: three clients wait, the others hear why at once, one finds it back", async () => {
    await start(() => undefined);
    const nobody = await listenRaw(() => {});
    await nobody.close();
    await harness.close();
    harness = await startGatewayHarness({ kubeletPort: nobody.port, nodeClock: clock, ...DECLARED });
    for (let client = 0; client < 3; client++) expect(await exec()).toBe("500");
    const response = await fetch(
      `http://${harness.authority}/api/v1/namespaces/default/pods/web/exec?${QUERY}`,
    );
    expect(response.status).toBe(400);
    const refused = await TunnelClient.refused(harness.authority);
    expect(refused).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
    expect(JSON.parse(refused.body)).toMatchObject({
      kind: "Status",
      reason: "ServiceUnavailable",
      message: `error dialing backend: node "node" failed 3 times in a row and is not dialled for 1s: dial tcp 127.0.0.1:${nobody.port}: connect: connection refused`,
    });
    clock.nowMs = 1_000;
    expect(await exec()).toBe("500");
    expect(await exec()).toBe("503");
    const refusals = harness.logLines.filter((line) => line.includes('"session refused"'));
    const levels = refusals.map((line) => JSON.parse(line).level);
    expect(levels).toEqual(["warn", "warn", "warn", "debug", "warn", "debug"]);
    expect(harness.logLines.filter((line) => line.includes("circuit is open")).length).toBe(1);
  });

  it("in mid-session: the client gets a failure, and the node is no worse for it", async () => {
    await start(
      () => undefined,
      { declaredFeatures: [] },
      {
        onStream: (name, _, { socket }) => {
          if (name === "stdout") socket.destroy();
        },
      },
    );
    expect([await exec(), asked()]).toEqual(["Failure", "POST"]);
    expect([await exec(), asked()]).toEqual(["Failure", "POST"]);
    expect(await harness.metric("sluice_nodes_dead ")).toEqual(["sluice_nodes_dead 0"]);
  });

  it("in the middle of a session that passes through: the client is told, and the path is as good as before", async () => {
    await start((request) => webSocketAnswer(request, ["\x01half"]).replace("\x88\x02\x03\xe8", ""));
    expect([await exec(), asked()]).toEqual(["Failure", "GET"]);
    expect([await exec(), asked()]).toEqual(["Failure", "GET"]);
  });
});

describe("a thousand sessions on nodes of every kind", () => {
  it("leave no socket, no session and one remembered node", { timeout: 60_000 }, async () => {
    let round = 0;
    const answers = [
      () => refusal("403 Forbidden", ""),
      () => "",
      () => refusal("404 Not Found", "pod does not exist"),
      (request: IncomingMessage) => webSocketAnswer(request, [statusMessage(KUBELET_WITHOUT_RUNTIME)]),
      (request: IncomingMessage) =>
        webSocketAnswer(request, ["\x01out", statusMessage({ status: "Success" })]),
    ];
    await start((request) => answers[round % answers.length]?.(request));
    const before = openSocketCount();
    const outcomes = new Map<string, number>();
    for (round = 0; round < 1_000; round++) {
      clock.nowMs += 31 * MINUTE;
      const outcome = await exec();
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
    expect(Object.fromEntries(outcomes)).toEqual({ ok: 400, "500": 200, "404": 200, Failure: 200 });
    await eventually("all is let go", () => kubelet.openSockets === 0 && openSocketCount() <= before);
    expect(harness.context.sessions.size).toBe(0);
    expect(harness.context.nodes.size).toBe(1);
  });
});
