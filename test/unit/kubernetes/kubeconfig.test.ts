import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ConfigurationError } from "../../../packages/client/src/config/configuration-error.ts";
import { readingInstead } from "../../../packages/client/src/config/named-file-text.ts";
import { loadInCluster, loadKubeconfig } from "../../../packages/client/src/kubernetes/kubeconfig.ts";

// The bounds under test.
const MAX_KUBECONFIG_BYTES = 4 * 1024 * 1024;
const CREDENTIALS_REUSE_MS = 60_000;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-kubeconfig-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const at = (name: string) => path.join(folder, name);
const pem = (what: string) => `-----BEGIN ${what}-----\nAAAA\n-----END ${what}-----\n`;
const base64 = (text: string) => Buffer.from(text).toString("base64");

interface Parts {
  readonly user?: object;
  readonly cluster?: object;
  readonly context?: object;
  readonly current?: string;
}

const config = ({ user = {}, cluster = {}, context = {}, current = "c" }: Parts = {}) =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": current,
    contexts: [{ name: "c", context: { cluster: "k", user: "u", ...context } }],
    clusters: [{ name: "k", cluster: { server: "https://api.example:6443/", ...cluster } }],
    users: [{ name: "u", user }],
  });
const v1 = { apiVersion: "client.authentication.k8s.io/v1", command: "x", interactiveMode: "Never" };
const load = async (parts: Parts, context?: string) => {
  await writeFile(at("config"), config(parts));
  return loadKubeconfig(at("config"), context, { environment: {} });
};

describe("loadKubeconfig", () => {
  it("gives server, namespace, trust, proxy and a token", async () => {
    await writeFile(at("client.crt"), pem("CERTIFICATE"));
    await writeFile(at("client.key"), pem("PRIVATE KEY"));
    const loaded = await load({
      user: { token: "abc", "client-certificate": "client.crt", "client-key": at("client.key") },
      cluster: {
        "certificate-authority-data": base64(pem("CERTIFICATE")),
        "tls-server-name": "kubernetes",
        "proxy-url": "http://proxy.example:3128",
      },
      context: { namespace: "team" },
    });
    expect(loaded.server).toBe("https://api.example:6443");
    expect([loaded.namespace, loaded.proxyUrl]).toEqual(["team", "http://proxy.example:3128"]);
    expect(loaded.tls).toEqual({
      ca: pem("CERTIFICATE"),
      certificate: pem("CERTIFICATE"),
      key: pem("PRIVATE KEY"),
      serverName: "kubernetes",
      insecureSkipVerify: false,
    });
    expect(await loaded.headers()).toEqual([["Authorization", "Bearer abc"]]);
  });

  it.each<[string, object, [string, string][]]>([
    ["nobody", {}, []],
    ["a password", { username: "jane", password: "p:w" }, [["Authorization", `Basic ${base64("jane:p:w")}`]]],
    [
      "impersonation",
      {
        token: "t",
        as: "bób",
        "as-uid": "7",
        "as-groups": ["g1", "g2"],
        "as-user-extra": { "example.com/a": ["x"] },
      },
      [
        ["Authorization", "Bearer t"],
        ["Impersonate-User", Buffer.from("bób").toString("latin1")],
        ["Impersonate-Uid", "7"],
        ["Impersonate-Group", "g1"],
        ["Impersonate-Group", "g2"],
        ["Impersonate-Extra-example.com%2Fa", "x"],
      ],
    ],
  ])("speaks for %s", async (_, user, lines) => {
    expect(await (await load({ user })).headers()).toEqual(lines);
  });

  it.each([
    { "as-groups": ["nobodies"] },
    { "as-uid": "7" },
    { "as-user-extra": { a: ["x"] }, as: "" },
  ])("refuses what narrows down an identity without a user to impersonate: %j", async (user) => {
    await expect(load({ user: { token: "t", ...user } })).rejects.toThrow(
      /requesting uid, groups or user-extra for \S+ without impersonating a user/,
    );
    const empty = { token: "t", "as-groups": [], "as-uid": "", "as-user-extra": {} };
    expect(await (await load({ user: empty })).headers()).toEqual([["Authorization", "Bearer t"]]);
  });

  it("reads a token's file again after a minute, and at once after a refusal", async () => {
    await writeFile(at("token"), "one\n");
    await writeFile(at("config"), config({ user: { tokenFile: "token", token: "stale" } }));
    let nowMs = 0;
    const loaded = await loadKubeconfig(at("config"), undefined, { environment: {}, nowMs: () => nowMs });
    const { tls } = loaded;
    await writeFile(at("token"), "two\n");
    nowMs = CREDENTIALS_REUSE_MS - 1;
    expect(await loaded.headers()).toEqual([["Authorization", "Bearer one"]]);
    nowMs = CREDENTIALS_REUSE_MS;
    expect(await loaded.headers()).toEqual([["Authorization", "Bearer two"]]);
    await writeFile(at("token"), "three\n");
    loaded.forget();
    expect(await loaded.headers()).toEqual([["Authorization", "Bearer three"]]);
    expect(loaded.tls).toBe(tls);
  });

  it("merges the files of $KUBECONFIG, the first that has an entry winning, and passes over missing ones", async () => {
    await writeFile(
      at("first"),
      JSON.stringify({ users: [{ name: "u", user: { token: "first" } }], "current-context": "c" }),
    );
    await writeFile(at("second"), config({ user: { token: "second" }, current: "other" }));
    const environment = { KUBECONFIG: [at("first"), at("missing"), at("second")].join(path.delimiter) };
    const loaded = await loadKubeconfig(undefined, undefined, { environment });
    expect(await loaded.headers()).toEqual([["Authorization", "Bearer first"]]);
  });

  it("reads ~/.kube/config, and in a pod the service account where there is none", async () => {
    await writeFile(at("token"), "of-the-pod");
    await writeFile(at("ca.crt"), pem("CERTIFICATE"));
    await writeFile(at("namespace"), "kube-system");
    const environment = {
      HOME: at("home"),
      KUBERNETES_SERVICE_HOST: "fd00::1",
      KUBERNETES_SERVICE_PORT: "443",
    };
    const loaded = await loadKubeconfig(undefined, undefined, { environment, serviceAccountFolder: folder });
    expect([loaded.server, loaded.namespace]).toEqual(["https://[fd00::1]:443", "kube-system"]);
    expect(await loaded.headers()).toEqual([["Authorization", "Bearer of-the-pod"]]);
    await expect(loadInCluster({ environment: {} })).rejects.toThrow(/KUBERNETES_SERVICE_HOST/);
  });

  it.each<[Parts, string | undefined, RegExp]>([
    [{}, "nope", /: context "nope" does not exist/],
    [{ current: "" }, undefined, /current-context is not set/],
    [{ context: { user: "x" } }, undefined, /user "x" does not exist/],
    [{ context: { cluster: "x" } }, undefined, /cluster "x" does not exist/],
    [
      { cluster: { server: "ftp://x" } },
      undefined,
      /config:1:\d+: clusters\[0\]\.cluster\.server: must be an http/,
    ],
    [{ user: { exec: { args: ["x"] } } }, undefined, /users\[0\]\.user\.exec\.command: is required/],
    [{ user: { exec: { command: "x" } } }, undefined, /exec\.apiVersion: is required/],
    [{ user: { exec: { ...v1, apiVersion: "v1" } } }, undefined, /exec\.apiVersion: "v1" is not supported/],
    [{ user: { exec: { ...v1, interactiveMode: null } } }, undefined, /exec\.interactiveMode: is required/],
    [{ user: { exec: { ...v1, env: [{ value: "x" }] } } }, undefined, /exec\.env\[0\]\.name: is required/],
    [
      { user: { exec: v1, "auth-provider": { name: "oidc" } } },
      undefined,
      /auth-provider: cannot be combined with an exec plugin/,
    ],
  ])("refuses %j with context %s", async (parts, context, message) => {
    const refused = load(parts, context);
    await expect(refused).rejects.toThrow(ConfigurationError);
    await expect(refused).rejects.toThrow(message);
  });

  const authority = { "certificate-authority-data": base64(pem("CERTIFICATE")) };
  it.each<[string, Parts, RegExp]>([
    [
      "an authority beside none",
      { cluster: { ...authority, "insecure-skip-tls-verify": true } },
      /insecure-skip-tls-verify: specifying a root certificates file with the insecure flag is not allowed/,
    ],
    [
      "an authority's file beside none",
      { cluster: { "certificate-authority": "ca.crt", "insecure-skip-tls-verify": true } },
      /insecure flag is not allowed/,
    ],
    [
      "two authorities",
      { cluster: { ...authority, "certificate-authority": "ca.crt" } },
      /certificate-authority-data: and certificate-authority are both specified/,
    ],
    [
      "a token and a password",
      { user: { token: "t", username: "jane", password: "p" } },
      /token: more than one authentication method found; found \[token basicAuth\], only one is allowed/,
    ],
    [
      "a token and a password without a name",
      { user: { token: "t", password: "p" } },
      /more than one authentication method/,
    ],
    [
      "a token's file and a password",
      { user: { tokenFile: "t", username: "jane" } },
      /tokenFile: username\/password or bearer token may be set, but not both/,
    ],
    [
      "a certificate without its key",
      { user: { "client-certificate": "c" } },
      /client-key: or client-key-data must be specified/,
    ],
    [
      "a certificate twice",
      {
        user: {
          "client-certificate": "c",
          "client-certificate-data": base64(pem("CERTIFICATE")),
          "client-key": "k",
        },
      },
      /client-certificate-data: and client-certificate are both specified/,
    ],
  ])("refuses what client-go refuses: %s", async (_, parts, message) => {
    await expect(load(parts)).rejects.toThrow(message);
  });

  it.each([
    "clusters",
    "contexts",
    "users",
  ])("refuses a name that stands twice in %s, also of entries that are not used", async (list) => {
    const entries = JSON.parse(config());
    entries[list].push({ name: "other" }, { name: "other" });
    await writeFile(at("config"), JSON.stringify(entries));
    await expect(loadKubeconfig(at("config"))).rejects.toThrow(
      new RegExp(`${list}\\[2\\]\\.name: duplicate name "other" in list`),
    );
  });

  it.each([
    "missing",
    "empty",
  ])("takes the token beside a file that is %s, as client-go does", async (how) => {
    if (how === "empty") await writeFile(at("token"), "\n");
    const loaded = await load({ user: { token: "beside", tokenFile: "token" } });
    expect(await loaded.headers()).toEqual([["Authorization", "Bearer beside"]]);
    await writeFile(at("token"), "of the file");
    loaded.forget();
    expect(await loaded.headers()).toEqual([["Authorization", "Bearer of the file"]]);
    await rm(at("token"));
    await expect(load({ user: { tokenFile: "token" } })).rejects.toThrow(/no such file/);
  });

  it("takes the last of equal keys, as client-go does", async () => {
    await writeFile(
      at("config"),
      config()
        .replace(
          '"users":[{"name":"u","user":{',
          '"users":[{"name":"u","user":{"token":"first","token":"last"',
        )
        .replace('"kind":', '"kind":"x","kind":'),
    );
    const loaded = await loadKubeconfig(at("config"));
    expect(await loaded.headers()).toEqual([["Authorization", "Bearer last"]]);
  });

  it.each(["utf16le", "utf16be", "utf8"])("reads a file with a byte order mark: %s", async (encoding) => {
    const text = `\uFEFF${config({ user: { token: "t" }, context: { namespace: "größe" } })}`;
    const bytes = Buffer.from(text, encoding === "utf8" ? "utf8" : "utf16le");
    await writeFile(at("config"), encoding === "utf16be" ? bytes.swap16() : bytes);
    expect((await loadKubeconfig(at("config"))).namespace).toBe("größe");
  });

  it("does not repeat a secret of the wrong type", async () => {
    const refused = load({ user: { token: 123_456_789 } });
    await expect(refused).rejects.toThrow(/token: must be a string/);
    await expect(refused).rejects.not.toThrow(/123456789/);
  });

  it.each([
    [{ exec: { ...v1, args: "--secret=hunter2" } }, "exec.args: must be a list, got a string"],
    [{ exec: "hunter2" }, "exec: must be a map, got a string"],
    [{ exec: { ...v1, env: ["hunter2"] } }, "env[0]: must be a map, got a string"],
    [{ "auth-provider": { name: "oidc", config: "hunter2" } }, "config: must be a map, got a string"],
    [{ as: "a", "as-groups": "hunter2" }, "as-groups: must be a list of strings, got a string"],
    [{ tokenFile: "hunter2\0" }, "tokenFile: must not contain NUL"],
    [{ "client-certificate": "hunter2\0", "client-key": "k" }, "client-certificate: must not contain NUL"],
  ])("does not repeat a user's text that stands in the wrong place: %j", async (user, problem) => {
    const refused = load({ user });
    await expect(refused).rejects.toThrow(problem);
    await expect(refused).rejects.not.toThrow(/hunter2/);
  });

  it("names a folder in place of a file", async () => {
    for (const user of [{ tokenFile: "." }, { "client-certificate": ".", "client-key": "." }])
      await expect(load({ user })).rejects.toThrow(`read ${folder}: is a directory`);
  });

  it("refuses a file past the bound", async () => {
    await writeFile(at("config"), " ".repeat(MAX_KUBECONFIG_BYTES + 1));
    await expect(loadKubeconfig(at("config"))).rejects.toThrow(
      /config: the file has more than 4194304 bytes/,
    );
  });

  it("takes what a predecessor has kept of files that vanished", async () => {
    const user = { tokenFile: "token" };
    const kept = [
      { name: at("config"), text: config({ user }) },
      { name: at("token"), text: "kept" },
    ];
    const loaded = await readingInstead(kept, () => loadKubeconfig(at("config")));
    expect(loaded.server).toBe("https://api.example:6443");
    expect(await loaded.headers()).toEqual([["Authorization", "Bearer kept"]]);
  });

  it("says what to do where there is none", async () => {
    const environment = { HOME: folder };
    await expect(loadKubeconfig(undefined, {}, { environment })).rejects.toThrow(
      "kubeconfig: there is none: name a file by --kubeconfig or $KUBECONFIG, or write ~/.kube/config",
    );
  });

  it("names a file that is not there", async () => {
    await expect(loadKubeconfig(at("missing"))).rejects.toThrow(/missing: no such file or directory$/);
  });
});
