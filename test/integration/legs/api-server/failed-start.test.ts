import { spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TestApiServer } from "../../../support/api-server/test-api-server.ts";
import { compiledSources } from "../../../support/built-program.ts";
import { GatewayFiles } from "../../../support/gateway-files.ts";
import { collect } from "../../../support/kubectl.ts";

/** Starts the gateway as a program that embeds it, and leaves the end of the process to what is still open. */
const PROGRAM = `
  const [folder, file] = process.argv.slice(1);
  const { startGateway } = await import(folder + "/app/app.js");
  const { parseConfiguration } = await import(folder + "/config/configuration.js");
  const { readFileSync } = await import("node:fs");
  await startGateway(parseConfiguration(readFileSync(file, "utf8"), file)).then(
    () => console.log("it started"),
    ({ message }) => console.log(message),
  );
`;

let server: TestApiServer;
let taken: Server;
let files: GatewayFiles;
beforeEach(async () => {
  server = await TestApiServer.start();
  taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
});
afterEach(async () => {
  files.remove();
  taken.close();
  await server.stop();
});

/** What a start that fails printed; rejects when the process did not end by itself. */
async function startWith(more: (takenPort: number) => Readonly<Record<string, unknown>>): Promise<string> {
  files = new GatewayFiles();
  const kubeconfig = await server.writeKubeconfig(files.write("kubeconfig", ""));
  const { port } = taken.address() as AddressInfo;
  const configuration = { logging: { level: "silent" }, cluster: { kubeconfig }, ...more(port) };
  files.configure({ configuration });
  const folder = pathToFileURL(compiledSources()).href;
  const args = ["--input-type=module", "-e", PROGRAM, folder, files.configurationFile];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"], timeout: 50_000 });
  const printed = collect(child.stdout);
  const [code, signal] = await once(child, "close");
  expect([code, signal], printed()).toEqual([0, null]);
  return printed();
}

describe("a start that fails on a live cluster", () => {
  it.each([
    ["a token file", { authentication: { tokenAuthFile: "/none/tokens.csv" } }, "/none/tokens.csv"],
    ["an audit policy", { audit: { policyFile: "/none/policy.yaml" } }, "/none/policy.yaml"],
    [
      "the CA of gateways that are probed",
      {
        upstreamProbes: { nodes: {}, gateways: {} },
        listeners: listeners({
          ingress: {
            streamingGateways: [
              { name: "next", url: "https://127.0.0.1:1", certificateAuthorityFile: "/none/ca" },
            ],
          },
        }),
      },
      "/none/ca",
    ],
  ])("leaves nothing open where %s is missing", async (_what, more, words) => {
    expect(await startWith(() => more)).toContain(words);
  });

  it.each([
    ["apiServer", (port: number) => listeners({ apiServer: { port } })],
    ["admin", (port: number) => listeners({ admin: { port } })],
    ["ingress", (port: number) => listeners({ ingress: { httpPort: 0, httpsPort: port } })],
  ])("leaves nothing open where the port of %s is taken", async (_listener, listenersAt) => {
    const printed = await startWith((port) => ({ listeners: listenersAt(port) }));
    expect(printed).toContain("address already in use");
  });
});

function listeners(more: Readonly<Record<string, object>>): Readonly<Record<string, object>> {
  const ingress = more.ingress && {
    ingress: { address: "127.0.0.1", httpPort: 0, httpsPort: 0, ...more.ingress },
  };
  return { apiServer: { port: 0 }, admin: { port: 0 }, ...more, ...ingress };
}
