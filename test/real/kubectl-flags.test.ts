import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer as createPlainServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import path from "node:path";
import { TLSSocket } from "node:tls";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { KubectlRunner } from "../support/kubectl.ts";
import { describeReal, kubectls } from "../support/real-parts.ts";
import { Sluice } from "../support/sluice.ts";
import { issueCertificate } from "../support/test-certificates.ts";

/** What a server sees of who asks for which pod. */
interface SeenRequest {
  readonly path: string;
  readonly host: string | undefined;
  readonly identity: Readonly<Record<string, unknown>>;
  readonly certificate: unknown;
}

const DISCOVERY: Readonly<Record<string, object>> = {
  "/api": { kind: "APIVersions", versions: ["v1"] },
  "/apis": { kind: "APIGroupList", apiVersion: "v1", groups: [] },
  "/api/v1": {
    kind: "APIResourceList",
    groupVersion: "v1",
    resources: [{ name: "pods", singularName: "pod", namespaced: true, kind: "Pod", verbs: ["get"] }],
  },
};

describeReal("kubectl", "kubectl's flags", () => {
  let runner: KubectlRunner;
  let sluice: Sluice;
  const servers: Server[] = [];
  let [first, second, plain] = ["", "", ""];
  let seen: SeenRequest[] = [];

  beforeAll(async () => {
    const [newest] = kubectls().slice(-1);
    if (newest === undefined) expect.unreachable("there is a kubectl");
    runner = new KubectlRunner(newest);
    const authority = await issueCertificate({ commonName: "authority" });
    const client = await issueCertificate({ commonName: "client" }, authority, { usage: "client" });
    const other = await issueCertificate({ commonName: "other" }, authority, { usage: "client" });
    const at127 = { addresses: ["127.0.0.1"], usage: "server" } as const;
    const at192 = { addresses: ["192.0.2.1"], usage: "server" } as const;
    for (const where of [at127, at192]) {
      const { cert, key } = await issueCertificate({ commonName: "server" }, authority, where);
      const tls = { cert, key, ca: authority.cert, requestCert: true, rejectUnauthorized: false };
      const server = createServer(tls, (request, response) => answer(request, response, seen));
      servers.push(server.listen(0, "127.0.0.1"));
      await once(server, "listening");
    }
    [first = "", second = ""] = servers.map((server) => `https://127.0.0.1:${portOf(server)}`);
    const open = createPlainServer((request, response) => answer(request, response, seen));
    servers.push(open.listen(0, "127.0.0.1"));
    await once(open, "listening");
    plain = `127.0.0.1:${portOf(open)}`;
    const files = {
      "ca.crt": authority.cert,
      "client.crt": client.cert,
      "client.key": client.key,
      "other.crt": other.cert,
      "other.key": other.key,
      config: JSON.stringify({
        apiVersion: "v1",
        kind: "Config",
        "current-context": "one",
        contexts: [
          { name: "one", context: { cluster: "first", user: "token", namespace: "team" } },
          { name: "two", context: { cluster: "second", user: "certificate" } },
        ],
        clusters: [
          { name: "first", cluster: { server: first, "certificate-authority": "ca.crt" } },
          {
            name: "second",
            cluster: {
              server: `${second}/below/`,
              "certificate-authority": "ca.crt",
              "tls-server-name": "192.0.2.1",
            },
          },
        ],
        users: [
          { name: "token", user: { token: "of-the-file" } },
          { name: "certificate", user: { "client-certificate": "client.crt", "client-key": "client.key" } },
          { name: "as", user: { token: "t", as: "jane", "as-groups": ["dev"] } },
        ],
      }),
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(path.join(runner.folder, name), text);
    sluice = new Sluice({ HOME: runner.folder });
  });
  beforeEach(() => {
    seen = [];
  });
  afterAll(() => {
    for (const server of servers) server.close();
    runner.remove();
  });

  /** The arguments with the names of servers and files filled in. */
  const filled = (args: readonly string[]) =>
    args.map((text) =>
      text
        .replace("FIRST", first)
        .replace("SECOND", second)
        .replace("PLAIN", plain)
        .replace("@", `${runner.folder}/`),
    );

  it.each([
    [["--kubeconfig", "@config"]],
    [["--kubeconfig=@config", "-n", "other"]],
    [["--kubeconfig", "@config", "--namespace=other"]],
    [["--kubeconfig", "@config", "--context", "two"]],
    [["--kubeconfig", "@config", "--cluster", "second"]],
    [["--kubeconfig", "@config", "--user", "certificate"]],
    [["--kubeconfig", "@config", "--user=as"]],
    [["--kubeconfig", "@config", "--user=as", "--as=joe", "--as-uid=7"]],
    [["--kubeconfig", "@config", "--as", "joe", "--as-group", "a", "--as-group=b", "--as-uid", "7"]],
    [["--kubeconfig", "@config", "--as", "joe", "--as-user-extra", "example.com/x=1", "--as-user-extra=y=2"]],
    [["--kubeconfig", "@config", "--token", "another"]],
    [["--kubeconfig", "@config", "--context=two", "--token", "another"]],
    [["--kubeconfig", "@config", "--client-certificate=@other.crt", "--client-key=@other.key"]],
    [
      [
        "--kubeconfig",
        "@config",
        "--context=two",
        "--client-certificate=@other.crt",
        "--client-key=@other.key",
      ],
    ],
    [["--kubeconfig", "@config", "-s", "SECOND", "--tls-server-name", "192.0.2.1"]],
    [["--kubeconfig", "@config", "-s", "SECOND"]],
    [["--kubeconfig", "@config", "--context=two", "-s", "FIRST"]],
    [["--kubeconfig", "@config", "--insecure-skip-tls-verify", "-s=SECOND"]],
    [["--kubeconfig", "@config", "--insecure-skip-tls-verify=true", "--server=PLAIN"]],
    [["--server", "FIRST", "--certificate-authority", "@ca.crt", "--token", "alone"]],
    [["--server", "FIRST", "--certificate-authority=@ca.crt", "--username=joe", "--password=secret"]],
    [["--server", "FIRST", "--token", "alone"]],
    [["--kubeconfig", "@config", "--request-timeout", "5"]],
    [["--kubeconfig", "@config", "--request-timeout=2m"]],
  ])("%j: the server sees the same, with flags before and behind the command", async (args) => {
    const flags = filled(args);
    const theirs = await runner.run([...flags, "exec", "web", "--", "true"]);
    expect(theirs.exitCode).toBe(1);
    const expected = seen.slice(0, 1);
    for (const own of [
      [...flags, "exec", "web", "--", "true"],
      ["exec", ...flags, "web", "--", "true"],
    ]) {
      seen = [];
      const { exitCode } = await sluice.run(own);
      expect([exitCode, seen]).toEqual([1, expected]);
    }
  });

  it.each([
    [["exec", "--nope", "web", "--", "true"], /unknown flag: --nope\nSee '\w+ exec --help' for usage\.\n$/],
    [["exec", "-z"], /unknown shorthand flag: .*-?z.*\nSee '\w+ exec --help' for usage\.\n$/],
    [["exec", "--namespace"], /flag needs an argument: --namespace.*\nSee '\w+ exec --help' for usage\.\n$/],
    [["--nope", "exec"], /unknown flag: --nope\nSee '\w+ --help' for usage\.\n$/],
    [["exec", "web"], /: you must specify at least one command for the container\n/],
    [["exce"], /unknown command "exce".*\n\n?Did you mean|unknown command "exce"; did you mean "exec"/],
    [["cp", "a"], /: source and destination are required\n/],
    [["port-forward", "web"], /: TYPE\/NAME and list of ports are required for port-forward\n/],
    [["exec", "--cluster=nope", "web", "--", "true"], /cluster "nope"/],
    [["exec", "--user=nope", "web", "--", "true"], /"nope" does not exist/],
    [["exec", "--context=nope", "web", "--", "true"], /context.*nope/],
    [["exec", "--as-group=dev", "web", "--", "true"], /without impersonating a user|need --as/],
    [["exec", "--request-timeout=abc", "web", "--", "true"], /whole seconds|single integer in seconds/],
  ])("%j: refused by both, with exit code 1 there and 2 here", async (args, message) => {
    const env = { KUBECONFIG: path.join(runner.folder, "config") };
    const theirs = await runner.run(args, { env });
    const ours = await sluice.run(args, { environment: env });
    expect([theirs.exitCode, ours.exitCode]).toEqual([1, 2]);
    expect(theirs.stderr).toMatch(message);
    expect(ours.stderr).toMatch(message);
    expect(seen).toEqual([]);
  });
});

function answer(request: IncomingMessage, response: ServerResponse, seen: SeenRequest[]): void {
  const pathname = (request.url ?? "").replace(/\?.*/, "");
  const found = DISCOVERY[pathname.replace(/^\/below/, "")];
  if (found === undefined) {
    const { headers, socket } = request;
    const identity = Object.entries(headers).filter(([name]) => /^(?:authorization|impersonate-)/.test(name));
    seen.push({
      path: pathname,
      host: headers.host,
      identity: Object.fromEntries(identity),
      certificate: socket instanceof TLSSocket ? socket.getPeerCertificate().subject?.CN : undefined,
    });
  }
  const status = {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    message: "no",
    reason: "Forbidden",
    code: 403,
  };
  response.writeHead(found === undefined ? 403 : 200, { "Content-Type": "application/json" });
  response.end(JSON.stringify(found ?? status));
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}
