import { once } from "node:events";
import { get } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { collect, KubectlRunner } from "../support/kubectl.ts";
import { describeReal, kubectls } from "../support/real-parts.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";

describeReal("kubectl", "policy by port, forwarded by real kubectls", () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startTestGateway({
      fakeNodes: [{}],
      configuration: {
        authorization: { mode: ["AlwaysAllow"] },
        policy: { rules: [{ name: "no-echo", match: { ports: [7] }, action: "deny" }] },
      },
    });
  });
  afterAll(() => gateway?.stop());

  for (const kubectl of kubectls()) {
    describe(`kubectl ${kubectl.version}`, () => {
      it.each(["true", "false"])("port 80 works, port 7 ends the session; WebSocket %s", async (value) => {
        const runner = new KubectlRunner(kubectl, { kubeconfig: gateway.kubeconfig });
        const env = { KUBECTL_PORT_FORWARD_WEBSOCKETS: value };
        const child = runner.start(["port-forward", "--address", "127.0.0.1", "pod/web", ":80", ":7"], env);
        const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
        const closed = once(child, "close");
        try {
          const localPort = (port: number) =>
            eventually(
              () => `kubectl listens; stderr: ${stderr()}`,
              () => new RegExp(`127\\.0\\.0\\.1:(\\d+) -> ${port}$`, "m").exec(stdout())?.[1],
              { timeoutMs: 20_000 },
            );
          const allowed = Number(await localPort(80));
          expect(await statusOf(allowed)).toBe(200);
          expect(await statusOf(Number(await localPort(7)))).toBeUndefined();
          // Cut as a whole: what is inside of one SPDY connection cannot be told apart by the client.
          await eventually(
            () => `kubectl notices; stderr: ${stderr()}`,
            () => /lost connection|error/i.test(stderr()),
            { timeoutMs: 20_000 },
          );
        } finally {
          child.kill("SIGKILL");
          await closed;
          runner.remove();
        }
      });
    });
  }
});

/** Undefined when the connection ends without an answer. */
function statusOf(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const request = get({ host: "127.0.0.1", port, agent: false, timeout: 10_000 }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(undefined));
  });
}
