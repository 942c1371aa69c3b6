import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { UsageError } from "../../../../src/cli/command.ts";
import { runCommand } from "../../../../src/cli/command-line.ts";
import { GatewayFiles, TESTER_TOKEN, webOn } from "../../../support/gateway-files.ts";
import { closedPort } from "../../../support/misbehaving-servers.ts";
import { ScriptedKubelet } from "../../../support/scripted-kubelet.ts";
import { startTestGateway, type TestGateway } from "../../../support/test-gateway.ts";
import { V5Client } from "../../../support/v5-client.ts";

const DECLARED = ["ExtendWebSocketsToKubelet"];
let printed = "";
let files: GatewayFiles | undefined;

afterEach(() => {
  vi.restoreAllMocks();
  files?.remove();
});

async function explain(...args: string[]): Promise<number> {
  printed = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  return await runCommand("explain", args);
}

describe("sluice explain node/NAME", () => {
  it("says from the manifests what the node declares and how each client reaches it", async () => {
    files = new GatewayFiles(webOn(10_255, DECLARED));
    expect(await explain("--config", files.configurationFile, "node/node")).toBe(0);
    expect(printed).toContain("node node at 127.0.0.1:10255\ndeclares ExtendWebSocketsToKubelet\nmode auto");
    expect(printed).toMatch(/kubectl 1\.30 and newer \(WebSocket v5\) +pass-through +the node declares/);
    expect(printed).toMatch(/kubectl 1\.31 and newer \(SPDY in WebSocket\) +pass-through/);
  });

  it("says what is bridged where only WebSocket passes", async () => {
    const kubelet = { streaming: { mode: "websocket-only" } };
    files = new GatewayFiles({ ...webOn(1), kubelet });
    expect(await explain("--config", files.configurationFile, "node/node")).toBe(0);
    const plans = printed
      .split("\n")
      .flatMap((line) => / (pass-through|bridge|tunnel|translate) /.exec(line)?.[1] ?? []);
    expect(plans).toEqual(["pass-through", "bridge", "bridge", "pass-through", "bridge", "bridge"]);
    expect(printed).toContain("nothing but WebSocket reaches the upstream, so SPDY ends here");
  });

  it("says who set another mode", async () => {
    const kubelet = { streaming: { nodes: { node: "spdy" } } };
    files = new GatewayFiles({ ...webOn(1, DECLARED), kubelet });
    expect(await explain("--config", files.configurationFile, "node/node")).toBe(0);
    expect(printed).toContain("mode spdy (configuration of this node)");
    expect(printed).toMatch(/\(WebSocket v5\) +translate +the node is configured or annotated to get SPDY/);
  });

  it("does not know a node that is not there", async () => {
    files = new GatewayFiles(webOn(1));
    expect(await explain("--config", files.configurationFile, "node/other")).toBe(1);
    expect(printed).toBe('nodes "other" not found\n');
  });

  it("refuses an address that is no URL", async () => {
    files = new GatewayFiles(webOn(1));
    const { configurationFile } = files;
    await expect(explain("--config", configurationFile, "--admin", "x", "node/node")).rejects.toThrow(
      '--admin must be a URL, got "x"',
    );
  });
});

describe("sluice explain node/NAME --admin URL", () => {
  const kubelet = new ScriptedKubelet({
    refuse: ({ method }) =>
      method === "GET" ? "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n" : undefined,
    onStream: (name, _, { socket }) => {
      if (name === "stdout") socket.destroy();
    },
  });
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startTestGateway({ scheme: "http", ...webOn(await kubelet.listen(), DECLARED) });
  });
  afterAll(async () => {
    await gateway.stop();
    await kubelet.close();
  });

  it("says what the running gateway learned", async () => {
    const args = ["--config", gateway.files.configurationFile, "--admin", gateway.adminUrl];
    expect(await explain(...args, "node/node")).toBe(0);
    expect(printed).toContain("nothing was learned of it lately");

    const headers = { Authorization: `Bearer ${TESTER_TOKEN}` };
    await new V5Client(gateway.authority, "stdout=true", "exec", headers).done;
    expect(await explain(...args, "node/node")).toBe(0);
    expect(printed).toMatch(
      /circuit closed\nexec and attach over WebSocket: worked 0 times, failed 1 times, last by forbidden; left out for (?:1m0s|59s)\nport-forward over WebSocket: worked 0 times, failed 0 times\n/,
    );
    expect(printed).toMatch(
      /\(WebSocket v5\) +translate +the node failed at the client's own protocol lately/,
    );
    expect(printed).toMatch(/\(SPDY in WebSocket\) +pass-through +the node declares/);
    expect(await explain(...args, "exec", "default/web")).toBe(0);
    expect(printed).toMatch(
      /\(WebSocket v5\) +translate +the node failed at the client's own protocol lately/,
    );
    expect(await explain(...args, "node/other")).toBe(1);
  });

  it("says in a line when nothing answers there, or something else does", async () => {
    const explainBy = (admin: string) =>
      explain("--config", gateway.files.configurationFile, "--admin", admin, "node/node");
    const port = await closedPort();
    await expect(explainBy(`http://127.0.0.1:${port}`)).rejects.toThrow(
      new UsageError(
        `--admin http://127.0.0.1:${port} does not answer: dial tcp 127.0.0.1:${port}: connect: connection refused`,
      ),
    );
    const { origin } = new URL(gateway.apiServerUrl);
    await expect(explainBy(origin)).rejects.toThrow(
      new UsageError(`--admin ${origin} answered 401: is it an admin listener?`),
    );
  });
});
