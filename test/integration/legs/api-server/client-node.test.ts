import { PassThrough } from "node:stream";
import { Attach, Exec, KubeConfig, PortForward, type V1Status } from "@kubernetes/client-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSelfSignedCertificate } from "../../../../packages/client/src/net/self-signed.ts";
import { startTestGateway, type TestGateway } from "../../../support/test-gateway.ts";

/** The official JavaScript client: WebSocket v5 to v1 for commands, the legacy WebSocket form for port-forward. */
describe.each([
  { node: "a node that speaks SPDY", declaresWebSockets: false },
  { node: "a node that declares WebSockets", declaresWebSockets: true },
])("@kubernetes/client-node through $node", ({ declaresWebSockets }) => {
  let gateway: TestGateway;
  const config = new KubeConfig();

  beforeAll(async () => {
    const tls = await createSelfSignedCertificate();
    gateway = await startTestGateway({ fakeNodes: [{ declaresWebSockets, tls }] });
    config.loadFromFile(gateway.kubeconfig);
  });
  afterAll(async () => {
    await gateway?.stop();
  });

  it("exec: stdin to its end, both outputs, exit code", async () => {
    const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
    const status = new Promise<V1Status>((resolve, reject) => {
      new Exec(config)
        .exec(
          "default",
          "web",
          "main",
          ["sh", "-c", "cat; echo err >&2; exit 7"],
          stdout,
          stderr,
          stdin,
          false,
          resolve,
        )
        .catch(reject);
    });
    stdin.end("hello\n");
    expect(await status).toMatchObject({ status: "Failure", reason: "NonZeroExitCode" });
    expect(String(stdout.read())).toBe("hello\n");
    expect(String(stderr.read())).toBe("err\n");
  });

  it("attach: what is said to the main process comes back", async () => {
    const [stdin, stdout] = [new PassThrough(), new PassThrough()];
    const socket = await new Attach(config).attach("default", "web", "main", stdout, null, stdin, false);
    stdin.write("a line\n");
    const heard = await new Promise((resolve) => stdout.once("data", resolve));
    expect(String(heard)).toBe("a line\n");
    socket.close();
  });

  it("port-forward: a page from port 80", async () => {
    const [output, error, input] = [new PassThrough(), new PassThrough(), new PassThrough()];
    await new PortForward(config).portForward("default", "web", [80], output, error, input);
    input.write("GET / HTTP/1.0\r\n\r\n");
    let page = "";
    for await (const chunk of output) {
      page += chunk;
      if (page.includes("</h1>")) break;
    }
    expect(page).toContain("Hello from pod web");
  });
});
