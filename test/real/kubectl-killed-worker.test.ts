import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { selfSignedPair } from "../support/gateway-files.ts";
import { collect, KubectlRunner } from "../support/kubectl.ts";
import { describeReal, kubectlSample } from "../support/real-parts.ts";
import { findKubectls } from "../support/real-parts-finder.ts";
import { WorkerGateway } from "../support/worker-gateway.ts";

const WORKERS = 2;
const RUNS = 4;

describeReal("kubectl", "kubectl and a worker that is killed with -9", () => {
  let gateway: WorkerGateway | undefined;
  afterEach(() => gateway?.stop());

  // spdystream ends its streams alike at FIN, at a reset and at a proper end, and an error stream that ends empty is success.
  describe.each([
    ...kubectlSample(),
    ...findKubectls().filter(({ minor }) => minor === 29),
  ])("kubectl $version", (kubectl) => {
    const speaksWebSocket = kubectl.minor >= 31;
    const outcome = speaksWebSocket ? "fails" : "cannot tell it from success, over SPDY";

    it(outcome, async () => {
      gateway = await WorkerGateway.start({
        workers: WORKERS,
        tls: await selfSignedPair("gateway"),
        script: {
          onStream: (name, _stream, session) => {
            if (name === "stderr") session.streams.get("stdout")?.write(Buffer.from("begun\n"));
          },
        },
      });
      const runner = new KubectlRunner(kubectl, { kubeconfig: gateway.kubeconfig() });
      const children = Array.from({ length: RUNS }, () =>
        runner.start(["exec", "web", "--", "sleep", "600"]),
      );
      try {
        const outputs = children.map((child) => [collect(child.stdout), collect(child.stderr)] as const);
        const ends = children.map((child) => once(child, "close"));
        await gateway.listed(RUNS);
        await expect
          .poll(() => outputs.every(([stdout]) => stdout() === "begun\n"), { timeout: 30_000 })
          .toBe(true);
        for (let index = 0; index < WORKERS; index += 1) process.kill(gateway.pidOf(index), "SIGKILL");
        const codes = (await Promise.all(ends)).map(([code]) => code as number);
        expect(codes).toEqual(Array.from({ length: RUNS }, () => (speaksWebSocket ? 1 : 0)));
      } finally {
        for (const child of children) child.kill("SIGKILL");
        runner.remove();
      }
    });
  });
});
