import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { loadKubeconfig } from "../../../packages/client/src/kubernetes/kubeconfig.ts";
import { readKubeconfigEntries } from "../../../packages/client/src/kubernetes/kubeconfig-entries.ts";
import { pluginOf } from "../../../packages/client/src/kubernetes/plugin-credentials.ts";
import { eventually } from "../../support/eventually.ts";
import { issueCertificate, type TestCertificate } from "../../support/test-certificates.ts";

type PluginOptions = Parameters<typeof pluginOf>[1];

// The bounds under test.
const CREDENTIALS_REUSE_MS = 60_000;
const MAX_PLUGIN_OUTPUT_BYTES = 1024 * 1024;

const V1 = "client.authentication.k8s.io/v1";
const V1BETA1 = "client.authentication.k8s.io/v1beta1";

let certificate: TestCertificate;
beforeAll(async () => {
  certificate = await issueCertificate({ commonName: "jane" });
});
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-plugin-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));
const at = (name: string) => path.join(folder, name);

/** A plugin that is one script; what it appends to `runs` counts its runs. */
async function scripted(script: string, more: object = {}): Promise<object> {
  await writeFile(
    at("plugin.cjs"),
    `require("fs").appendFileSync(${JSON.stringify(at("runs"))}, ".");\n${script}`,
  );
  const args = [at("plugin.cjs"), "arg"];
  return { apiVersion: V1, command: process.execPath, args, interactiveMode: "Never", ...more };
}
const printing = (text: string, more: object = {}) =>
  scripted(`process.stdout.write(${JSON.stringify(text)});`, more);
const credential = (status: unknown, more: object = {}) =>
  JSON.stringify({ apiVersion: V1, kind: "ExecCredential", status, ...more });
const runs = async () => (await readFile(at("runs"), "utf8").catch(() => "")).length;

async function writeConfig(user: object, cluster: object = {}): Promise<string> {
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "c",
    contexts: [{ name: "c", context: { cluster: "k", user: "u" } }],
    clusters: [{ name: "k", cluster: { server: "https://api.example:6443", ...cluster } }],
    users: [{ name: "u", user }],
  };
  await writeFile(at("config"), JSON.stringify(config));
  return at("config");
}
const load = async (user: object, cluster?: object, nowMs = () => 0) =>
  loadKubeconfig(await writeConfig(user, cluster), undefined, { environment: {}, nowMs });
const ask = async (exec: object, options: PluginOptions = {}) => {
  const plugin = pluginOf(await readKubeconfigEntries([await writeConfig({ exec })], {}), options);
  return plugin?.();
};
/** The token is what the plugin was told. */
const TELLS = `const { apiVersion } = JSON.parse(process.env.KUBERNETES_EXEC_INFO);
  const status = { token: process.env.KUBERNETES_EXEC_INFO };
  console.log(JSON.stringify({ apiVersion, kind: "ExecCredential", status }));`;
const told = (authorization: string | undefined) => JSON.parse(authorization?.replace("Bearer ", "") ?? "");

describe("an exec plugin", () => {
  it("gets arguments and environment, and gives a token and a certificate", async () => {
    const status = `{ token: [process.env.EXTRA, process.argv[2], process.env.HOME].join(" "),
      clientCertificateData: ${JSON.stringify(certificate.cert)}, clientKeyData: ${JSON.stringify(certificate.key)} }`;
    const script = `console.log(JSON.stringify({ apiVersion: ${JSON.stringify(V1)}, kind: "ExecCredential", status: ${status} }))`;
    const loaded = await load({ exec: await scripted(script, { env: [{ name: "EXTRA", value: "extra" }] }) });
    expect(await loaded.headers()).toEqual([["Authorization", `Bearer extra arg ${process.env.HOME}`]]);
    expect(loaded.tls).toMatchObject({ certificate: certificate.cert, key: certificate.key });
  });

  it("is told about the cluster only where it is to be", async () => {
    const cluster = {
      "tls-server-name": "kubernetes",
      "proxy-url": "http://proxy.example:3128",
      "certificate-authority": "ca.crt",
      extensions: [{ name: "client.authentication.k8s.io/exec", extension: { audience: "a" } }],
    };
    await writeFile(at("ca.crt"), certificate.cert);
    const loaded = await load({ exec: await scripted(TELLS, { provideClusterInfo: true }) }, cluster);
    expect(told((await loaded.headers())[0]?.[1])).toEqual({
      kind: "ExecCredential",
      apiVersion: V1,
      spec: {
        interactive: false,
        cluster: {
          server: "https://api.example:6443",
          "tls-server-name": "kubernetes",
          "proxy-url": "http://proxy.example:3128",
          "certificate-authority-data": Buffer.from(certificate.cert).toString("base64"),
          config: { audience: "a" },
        },
      },
    });
    const silent = await load({ exec: await scripted(TELLS, { apiVersion: V1BETA1 }) }, cluster);
    expect(told((await silent.headers())[0]?.[1])).toEqual({
      kind: "ExecCredential",
      apiVersion: V1BETA1,
      spec: { interactive: false },
    });
  });

  it.each([
    ["Never", true, false],
    ["IfAvailable", false, false],
    ["IfAvailable", true, true],
    ["Always", true, true],
  ])("with interactiveMode %s and a terminal %s is interactive: %s", async (interactiveMode, isTerminal, expected) => {
    const given = await ask(await scripted(TELLS, { interactiveMode }), { isTerminal: () => isTerminal });
    expect(told(given?.authorization).spec).toEqual({ interactive: expected });
  });

  it("that must be interactive is not run without a terminal", async () => {
    const exec = await scripted(TELLS, { interactiveMode: "Always" });
    await expect(ask(exec, { isTerminal: () => false })).rejects.toThrow(
      "getting credentials: exec plugin cannot support interactive mode: standard input is not a terminal",
    );
    expect(await runs()).toBe(0);
  });

  it.each<[string, string, string]>([
    ["an empty output", "", "decoding stdout: it is not a JSON or YAML map"],
    ["no JSON", "secret: [", "decoding stdout: it is not a JSON or YAML map"],
    [
      "another kind",
      credential({ token: "secret" }, { kind: "Pod" }),
      "decoding stdout: the kind is not ExecCredential",
    ],
    [
      "another version",
      credential({ token: "secret" }, { apiVersion: V1BETA1 }),
      `exec plugin is configured to use API version ${V1}, plugin returned version ${V1BETA1}`,
    ],
    ["no status", credential(undefined), "exec plugin didn't return a status field"],
    ["an empty status", credential({}), "exec plugin didn't return a token or cert/key pair"],
    [
      "a key alone",
      credential({ clientKeyData: "secret" }),
      "exec plugin returned only certificate or key, not both",
    ],
    ["a number as token", credential({ token: 1 }), "decoding stdout: status.token must be a string"],
    [
      "a token of two lines",
      credential({ token: "secret\nx" }),
      "exec plugin returned a token that no header can hold",
    ],
    [
      "a bad time",
      credential({ token: "secret", expirationTimestamp: "soon" }),
      "decoding stdout: status.expirationTimestamp must be a time as RFC 3339 writes it",
    ],
    [
      "no certificate",
      credential({ clientCertificateData: "secret", clientKeyData: "secret" }),
      "failed parsing client key/certificate: ",
    ],
  ])("that prints %s is refused, its output unquoted", async (_, output, message) => {
    const refused = ask(await printing(output));
    await expect(refused).rejects.toThrow(`getting credentials: ${message}`);
    await expect(refused).rejects.not.toThrow(/secret/);
  });

  it("may print YAML", async () => {
    const given = await ask(await printing(`kind: ExecCredential\napiVersion: ${V1}\nstatus: {token: t}\n`));
    expect(given?.authorization).toBe("Bearer t");
  });

  it("that fails is named with its exit code, and not with what it printed", async () => {
    const exec = await scripted("console.error('secret'); console.log('secret'); process.exit(3)");
    const refused = ask(exec);
    await expect(refused).rejects.toThrow(
      `getting credentials: exec: executable ${process.execPath} failed with exit code 3`,
    );
    await expect(refused).rejects.not.toThrow(/secret/);
  });

  it("whose command line holds NUL is not run, and no text of it is repeated", async () => {
    for (const more of [
      { args: ["secret\0"] },
      { env: [{ name: "A", value: "secret\0" }] },
      { env: [{ name: "A\0secret", value: "" }] },
    ]) {
      const refused = ask(await printing(credential({ token: "t" }), more));
      await expect(refused).rejects.toThrow(`exec: fork/exec ${process.execPath}: invalid argument`);
      await expect(refused).rejects.not.toThrow(/secret/);
    }
    expect(await runs()).toBe(0);
  });

  it("that is not installed comes with its hint, and one that is not there with its path", async () => {
    const missing = { apiVersion: V1BETA1, command: "sluice-no-such-plugin", installHint: "brew install it" };
    await expect(ask(missing)).rejects.toThrow(
      /getting credentials: exec: executable sluice-no-such-plugin not found\n\nIt looks like .*\n\nbrew install it$/s,
    );
    await expect(ask({ ...missing, command: "./missing" })).rejects.toThrow(
      `getting credentials: exec: fork/exec ${at("missing")}: no such file or directory`,
    );
  });

  it.each([
    ["an argument", { args: ["hunter2".repeat(30_000)] }],
    ["a variable", { env: [{ name: "A", value: "hunter2".repeat(30_000) }] }],
  ])("that the system refuses for %s that is too long is named, without its texts", async (_what, more) => {
    for (const command of ["/bin/true", "true"])
      await expect(ask({ apiVersion: V1BETA1, command, ...more })).rejects.toThrow(
        /^getting credentials: exec: fork\/exec \S*true: argument list too long$/,
      );
  });

  it("is killed when it prints without end", async () => {
    const endless =
      "const line = 'x'.repeat(65536); (function more() { process.stdout.write(line, more) })()";
    await expect(ask(await scripted(endless))).rejects.toThrow(
      `getting credentials: exec: it printed more than ${MAX_PLUGIN_OUTPUT_BYTES} bytes`,
    );
  });

  it("that says nothing is waited for only so long, and killed", async () => {
    const args = ["-c", `echo $$ > ${at("pid")}; exec sleep 60`];
    const exec = { apiVersion: V1BETA1, command: "sh", args };
    await expect(ask(exec, { timeoutMs: 2_000 })).rejects.toThrow("gave no answer in 2 s");
    const pid = Number(await readFile(at("pid"), "utf8"));
    await eventually(`process ${pid} ends`, () => !isRunning(pid));
  });

  it("that ends while what it started holds the pipe gives what it printed", async () => {
    const started = `sleep 60 & echo $! > ${at("pid")}`;
    const args = ["-c", `${started}; printf '%s' '${credential({ token: "t" })}'`];
    const exec = { apiVersion: V1, command: "sh", args, interactiveMode: "Never" };
    try {
      expect(await ask(exec, { timeoutMs: 60_000 })).toMatchObject({ authorization: "Bearer t" });
      expect(isRunning(Number(await readFile(at("pid"), "utf8")))).toBe(true);
    } finally {
      process.kill(Number(await readFile(at("pid"), "utf8")));
    }
  });
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe("credentials of a plugin", () => {
  const expiring = (inMs: number) =>
    credential({ token: "t", expirationTimestamp: new Date(Date.now() + inMs) });

  it("serve until the API server refuses them where they do not expire", async () => {
    let nowMs = 0;
    const loaded = await load({ exec: await printing(credential({ token: "t" })) }, {}, () => nowMs);
    nowMs = 10 * CREDENTIALS_REUSE_MS;
    await loaded.headers();
    expect(await runs()).toBe(1);
    loaded.forget();
    await Promise.all([loaded.headers(), loaded.headers()]);
    expect(await runs()).toBe(2);
  });

  it("are asked for again once they have expired, be it within the minute", async () => {
    let nowMs = 0;
    const loaded = await load({ exec: await printing(expiring(3_600_000)) }, {}, () => nowMs);
    nowMs = CREDENTIALS_REUSE_MS;
    await loaded.headers();
    expect(await runs()).toBe(1);
    const expired = await load({ exec: await printing(expiring(-1)) });
    await expired.headers();
    expect(await runs()).toBe(3);
  });

  it.each<[string, object]>([
    ["a token", { token: "own" }],
    ["a token's file", { tokenFile: "token" }],
    ["a password", { username: "jane", password: "own" }],
    ["a certificate", { "client-certificate": "client.crt", "client-key": "client.key" }],
  ])("are not asked for where the user has %s", async (_, user) => {
    await writeFile(at("token"), "own");
    await writeFile(at("client.crt"), certificate.cert);
    await writeFile(at("client.key"), certificate.key);
    const loaded = await load({ ...user, exec: await printing(credential({ token: "t" })) });
    expect(JSON.stringify(await loaded.headers())).not.toContain("Bearer t");
    expect(await runs()).toBe(0);
  });
});

describe("the official JavaScript client", () => {
  let pair: object;
  beforeAll(() => {
    pair = { clientCertificateData: certificate.cert, clientKeyData: certificate.key };
  });
  afterAll(() => {
    pair = {};
  });

  it.each<[string, () => object]>([
    ["a token", () => ({ token: "t" })],
    ["a certificate", () => pair],
    ["both", () => ({ token: "t", ...pair })],
    ["an expiring token", () => ({ token: "t", expirationTimestamp: "2999-01-01T00:00:00Z" })],
  ])("takes %s from a plugin as we do", async (_, status) => {
    const exec = await printing(credential(status()));
    const client = new KubeConfig();
    client.loadFromFile(await writeConfig({ exec }));
    const options: { headers: Record<string, string>; cert?: unknown; key?: unknown } = { headers: {} };
    await client.applyToHTTPSOptions(options as Parameters<KubeConfig["applyToHTTPSOptions"]>[0]);
    const given = await ask(exec);
    expect([given?.authorization, given?.certificate, given?.key]).toEqual([
      options.headers.Authorization,
      options.cert,
      options.key,
    ]);
  });
});
