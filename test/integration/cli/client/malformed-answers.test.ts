import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand } from "../../../../src/cli/command-line.ts";
import { capturedOutput } from "../../../support/captured-output.ts";
import { GatewayFiles } from "../../../support/gateway-files.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Every command that reads objects of a server, at one that answers 200 with something else. */
describe("an answer that is not what was asked for", () => {
  const files = new GatewayFiles({});
  let server: Server;
  let url = "";
  let answer = "";
  const printed = capturedOutput();
  beforeAll(async () => {
    server = createServer((_request, response) => response.end(answer)).listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server?.closeAllConnections();
    server?.close();
    files.remove();
  });

  const pod = (more: object) => JSON.stringify({ metadata: { name: "web", namespace: "default" }, ...more });
  const DEEP = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
  const LONE_SURROGATE = "\\ud800";
  const NO_OBJECTS = ["null", "[]", "7", DEEP];
  const NO_PODS = [
    ...NO_OBJECTS,
    "{}",
    '{"metadata":null}',
    pod({ spec: { containers: [null] } }),
    pod({ spec: 1 }),
    pod({ spec: { containers: [{ name: "main" }] } }).replace("}", `,"more":${DEEP}}`),
    pod({ spec: { containers: [{ name: "main" }] } }).replace("web", LONE_SURROGATE),
  ];
  const NO_LISTS = [
    ...NO_OBJECTS,
    '{"items":{}}',
    '{"metadata":{},"items":[null]}',
    '{"metadata":{},"items":[{}]}',
    `{"metadata":{},"more":${DEEP}}`,
  ];
  const commands: readonly [readonly string[], readonly string[]][] = [
    [["exec", "web", "--", "true"], NO_PODS],
    [
      ["exec", "service/web", "--", "true"],
      [...NO_OBJECTS, "{}", '{"spec":{"selector":1}}'],
    ],
    [
      ["exec", "deploy/web", "--", "true"],
      [...NO_OBJECTS, "{}", '{"spec":{"selector":{"matchExpressions":[1]}}}'],
    ],
    [["attach", "web"], NO_PODS],
    [["cp", "web:/x", "-"], NO_PODS],
    [["port-forward", "web", "0:80"], NO_PODS],
    [["logs", "web"], NO_PODS],
    [["logs", "-l", "a=b"], NO_LISTS],
    [["sessions", "list"], NO_LISTS],
    [["sessions", "list", "-w"], NO_LISTS],
    [["sessions", "list", "-o", "json"], NO_LISTS],
    [["sessions", "end", "s", "-A"], NO_LISTS],
    [
      ["sessions", "watch", "s"],
      ["null\n", "[]\n", "7\n", "[0]\n", '[0,"o",5]\n', "[0,\n", "{", `{}\n[0,"o","`, `{"a":${DEEP}}\n`],
    ],
    [["sessions", "watch", "s", "-o", "json"], [`{"a":${DEEP}}\n`]],
  ];
  it.each(commands)("%j says so, and exits with 1", async (words, answers) => {
    const [name = "", ...args] = words;
    const at = args.includes("--") ? args.indexOf("--") : args.length;
    const kubeconfig = ["--kubeconfig", files.writeKubeconfig(url)];
    const listeners = () => SIGNALS.map((signal) => [signal, process.listenerCount(signal)]);
    const before = listeners();
    for (answer of answers) {
      printed.text = "";
      const code = await runCommand(name, [...args.slice(0, at), ...kubeconfig, ...args.slice(at)]);
      expect([answer, code, printed.text]).toEqual([answer, 1, expect.stringMatching(/^error: [^\n]+\n$/)]);
    }
    expect(listeners()).toEqual(before);
  });

  it.each([
    "null",
    "{}",
    "[null]",
    "[{}]",
    '[{"name":"node-1","capability":null}]',
  ])("explain --admin, at %s", async (text) => {
    answer = text;
    const words = ["--config", files.configurationFile, "node/node-1", "--admin", url];
    await expect(runCommand("explain", words)).rejects.toThrow("is it an admin listener?");
  });

  it.each(["null", "[]", "{}", '{"metadata":{},"spec":{}}'])("explain, at a cluster's %s", async (text) => {
    answer = text;
    const config = JSON.parse(files.read("gateway.json"));
    const file = files.write(
      "live.json",
      JSON.stringify({ ...config, cluster: { kubeconfig: files.writeKubeconfig(url) } }),
    );
    expect(await runCommand("explain", ["--config", file, "exec", "web", "--as", "ana"])).toBe(1);
    expect(printed.text).toMatch(/^refused with (?:404|500|503|504): [^\n]+\n$/m);
  });
});
