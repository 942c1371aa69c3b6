import { afterEach, describe, expect, it } from "vitest";
import { type GatewayHarness, startGatewayHarness } from "../../../support/gateway-harness.ts";
import { openClient, readToEnd } from "../../../support/http/loopback.ts";
import { ScriptedKubelet } from "../../../support/scripted-kubelet.ts";

const EXEC = "/api/v1/namespaces/default/pods/web/exec?stdout=true&command=x";
const SPDY = ["Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io"];
const WEBSOCKET = [
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  "Sec-WebSocket-Protocol: v5.channel.k8s.io",
];

let harness: GatewayHarness | undefined;
let kubelet: ScriptedKubelet | undefined;

afterEach(async () => {
  await harness?.close();
  await kubelet?.close();
  harness = kubelet = undefined;
});

/** The answer's status code and the message of its Status. */
async function answerTo(method: string, path: string, lines: readonly string[], body = ""): Promise<unknown> {
  kubelet = new ScriptedKubelet({});
  harness = await startGatewayHarness({ kubeletPort: await kubelet.listen() });
  const socket = await openClient(Number(harness.authority.split(":")[1]));
  socket.write(`${[`${method} ${path} HTTP/1.1`, "Host: gateway", ...lines].join("\r\n")}\r\n\r\n${body}`);
  const { text } = await readToEnd(socket);
  const [head = "", json = ""] = text.split("\r\n\r\n");
  return [Number(head.split(" ")[1]), JSON.parse(json).message];
}

describe("upgrade requests that are none, or more than one", () => {
  it("Connection that merely contains upgrade is answered, not left hanging", async () => {
    // A request that the HTTP parser does not take for an upgrade keeps its connection; ask for its end.
    const lines = ["Connection: x-upgrade, close", ...WEBSOCKET];
    expect(await answerTo("GET", EXEC, lines)).toEqual([400, "Upgrade request required"]);
  });

  const bodies: [name: string, lines: string[], body: string][] = [
    ["a length", ["Content-Length: 5"], "hello"],
    ["chunks", ["Transfer-Encoding: chunked"], "5\r\nhello\r\n0\r\n\r\n"],
    ["a length, and not all of it", ["Content-Length: 500"], "hello"],
  ];
  for (const [name, lines, body] of bodies) {
    it(`a body does not become the session's first bytes: ${name}`, async () => {
      const answer = await answerTo("POST", EXEC, [...SPDY, ...lines], body);
      expect(answer).toEqual([400, "an upgrade request cannot have a body"]);
      expect(kubelet?.requests).toEqual([]);
    });
  }

  for (const target of ["//api/v1/namespaces/default/pods/web/exec", "http://x/api/v1", "*"]) {
    it(`the target ${target} is no path`, async () => {
      expect(await answerTo("GET", target, ["Connection: Upgrade", ...WEBSOCKET])).toEqual([
        400,
        "the request target must be a path",
      ]);
    });
  }
});

describe("a request head that does not end", () => {
  for (const [name, begun] of [
    ["nothing at all", ""],
    ["half a request line", "GET /api"],
    ["no empty line", `GET ${EXEC} HTTP/1.1\r\nHost: gateway\r\nX-More: `],
  ] as const) {
    it(`${name}: 408 when the time is up`, async () => {
      harness = await startGatewayHarness({ kubeletPort: 1, timeouts: { handshakeMs: 200 } });
      const socket = await openClient(Number(harness.authority.split(":")[1]));
      if (begun !== "") socket.write(begun);
      const startMs = performance.now();
      expect((await readToEnd(socket)).text).toContain("HTTP/1.1 408 Request Timeout\r\n");
      expect(performance.now() - startMs).toBeLessThan(5_000);
    });
  }
});
