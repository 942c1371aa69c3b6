import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSelfSignedCertificate } from "../../packages/client/src/net/self-signed.ts";
import { listenRaw } from "../support/http/loopback.ts";
import { KubectlRunner } from "../support/kubectl.ts";
import { describeReal, kubectlSample } from "../support/real-parts.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";

describeReal("kubectl", "kubectl and a node that is gone", () => {
  let gateway: TestGateway;
  let nobody: Awaited<ReturnType<typeof listenRaw>>;

  beforeAll(async () => {
    // One that refuses would be tried again within a second.
    nobody = await listenRaw((socket) => socket.destroy());
    const tls = await createSelfSignedCertificate();
    gateway = await startTestGateway({
      nodes: [{ name: "gone", port: nobody.port, declaredFeatures: ["ExtendWebSocketsToKubelet"] }],
      pods: [{ name: "web", nodeName: "gone", container: "main" }],
      kubeletAuthority: tls.certPem,
      // Long enough for every kubectl to meet it closed.
      kubelet: { circuitBreaker: { retry: "10m", maxRetry: "10m" } },
    });
  });
  afterAll(async () => {
    await gateway?.stop();
    await nobody?.close();
  });

  describe.each(kubectlSample())("kubectl $version", (kubectl) => {
    it.each([
      ["exec", ["exec", "web", "--", "id"]],
      ["port-forward", ["port-forward", "web", ":80"]],
    ])("%s ends at once, and says which node and why", async (_, command) => {
      const runner = new KubectlRunner(kubectl, { kubeconfig: gateway.kubeconfig });
      try {
        const dials = async () => (await gateway.readMetrics()).get("sluice_node_dial_failures_total") ?? 0;
        for (let tries = 0; tries < 3 && (await dials()) < 3; tries++) await runner.run(command);
        const before = await dials();
        const { exitCode, stderr } = await runner.run(command);
        expect(exitCode).toBe(1);
        expect(stderr).toContain(
          `error dialing backend: node "gone" failed 3 times in a row and is not dialled for`,
        );
        expect(stderr).toMatch(/EOF|connection reset by peer/);
        expect(await dials()).toBe(before);
      } finally {
        runner.remove();
      }
    });
  });
});
