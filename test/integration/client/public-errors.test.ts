import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable, Writable } from "node:stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as client from "../../../packages/client/src/index.ts";
import { type RunningDemo, startDemo } from "../../support/demo.ts";

const { copyFrom, copyTo, exec, forward, getObject, openCluster, readLog, Target } = client;
const folder = mkdtempSync(path.join(tmpdir(), "sluice-errors-"));
const at = (name: string): string => path.join(folder, name);
let demo: RunningDemo;
let cluster: client.Cluster;
beforeAll(async () => {
  demo = await startDemo();
  cluster = await openCluster(demo.kubeconfig);
  writeFileSync(at("file"), "text");
});
afterAll(async () => {
  await demo.stop();
  rmSync(folder, { recursive: true, force: true });
});

const web = { pod: "web" };
const nobody = { pod: "nobody" };
const broken = (): Readable =>
  new Readable({
    read() {
      this.destroy(new Error("the disk failed"));
    },
  });
const refusing = (): Writable =>
  new Writable({ write: (_chunk, _encoding, done) => done(new Error("full")) });
const quiet = () => ({ stdout: new Writable({ write: (_chunk, _encoding, done) => done() }) });
const ended = (): AbortSignal => AbortSignal.abort();
const soon = (): AbortSignal => AbortSignal.timeout(300);
/** A cluster that nothing listens for, and one whose credentials fail. */
const away = (): client.Cluster => ({
  target: new Target({ url: "http://127.0.0.1:1", proxy: "none" }),
  namespace: "default",
});
const withoutCredentials = (): client.Cluster => ({
  target: new Target({
    url: cluster.target.url,
    proxy: "none",
    headers: () => Promise.reject(new client.CredentialsError("no token")),
  }),
  namespace: "default",
});
const log = async (where: client.Cluster, pod: client.ContainerName, options = {}): Promise<void> => {
  for await (const _ of await readLog(where, pod, options));
};

/** The exported errors, and each code as README's table of errors has it. */
const table = readFileSync(path.join(import.meta.dirname, "../../../packages/client/README.md"), "utf8");
function named(error: unknown): string {
  const known = [
    client.ConnectError,
    client.SessionError,
    client.CopyError,
    client.ConfigurationError,
    client.CredentialsError,
  ].find((one) => error instanceof one);
  if (known === undefined) return `not exported: ${String(error)}`;
  const { code, leg } = error as { code?: string; leg?: string };
  const row = table.split("\n").find((line) => line.startsWith(`| \`${known.name}\``)) ?? "";
  const kind = code ?? leg;
  if (kind !== undefined && !row.includes(`\`${kind}\``)) return `not in the table: ${known.name} ${kind}`;
  return kind === undefined ? known.name : `${known.name} ${kind}`;
}

describe("every failure of the library is an exported error of README's table", () => {
  it.each<[string, string, () => Promise<unknown>]>([
    ["exec in no pod", "ConnectError http", () => exec(cluster, nobody, ["true"])],
    ["exec on no server", "ConnectError tcp", () => exec(away(), web, ["true"])],
    ["exec without credentials", "CredentialsError", () => exec(withoutCredentials(), web, ["true"])],
    ["exec, aborted before", "ConnectError aborted", () => exec(cluster, web, ["true"], { signal: ended() })],
    [
      "exec, aborted",
      "SessionError aborted",
      () => exec(cluster, web, ["sleep", "9"], { ...quiet(), signal: soon() }),
    ],
    [
      "exec of no program",
      "SessionError remote-failure",
      () => exec(cluster, web, ["no-such-program"], quiet()),
    ],
    ["exec, bad input", "SessionError input-failed", () => exec(cluster, web, ["cat"], { stdin: broken() })],
    [
      "exec, bad output",
      "SessionError output-failed",
      () => exec(cluster, web, ["echo", "a"], { stdout: refusing() }),
    ],
    ["copy to no pod", "ConnectError http", () => copyTo(cluster, nobody, at("file"), at("a"))],
    ["copy to no server", "ConnectError tcp", () => copyTo(away(), web, at("file"), at("a"), { retries: 1 })],
    [
      "copy without credentials",
      "CredentialsError",
      () => copyTo(withoutCredentials(), web, at("file"), at("a"), { retries: 1 }),
    ],
    ["copy of nothing", "CopyError usage", () => copyTo(cluster, web, at("nothing"), at("a"))],
    ["copy below a file there", "CopyError remote", () => copyTo(cluster, web, at("file"), at("file/a/b"))],
    ["copy of a bad stream", "SessionError input-failed", () => copyTo(cluster, web, broken(), at("b"))],
    [
      "copy, aborted before",
      "ConnectError aborted",
      () => copyTo(cluster, web, at("file"), at("a"), { signal: ended() }),
    ],
    ["copy from nothing", "CopyError usage", () => copyFrom(cluster, web, at("nothing"), at("a"))],
    ["copy below a file here", "CopyError local", () => copyFrom(cluster, web, at("file"), at("file/a/b"))],
    [
      "copy into a full stream",
      "SessionError output-failed",
      () => copyFrom(cluster, web, at("file"), refusing()),
    ],
    ["log of no pod", "ConnectError http", () => log(cluster, nobody)],
    ["log of no server", "ConnectError tcp", () => log(away(), web)],
    ["log without credentials", "CredentialsError", () => log(withoutCredentials(), web)],
    ["log, aborted before", "ConnectError aborted", () => log(cluster, web, { signal: ended() })],
    ["object that is not there", "ConnectError http", () => getObject(cluster.target, "/api/v1/nothing")],
    ["object of no server", "ConnectError tcp", () => getObject(away().target, "/api")],
    ["object without credentials", "CredentialsError", () => getObject(withoutCredentials().target, "/api")],
    [
      "object, aborted before",
      "ConnectError aborted",
      () => getObject(cluster.target, "/api", { signal: ended() }),
    ],
    ["forward to no pod", "ConnectError http", () => forward(cluster, nobody, [{ local: 0, remote: 80 }])],
    ["no kubeconfig", "ConfigurationError", () => openCluster(at("nothing"))],
  ])("%s: %s", async (_, expected, run) => {
    expect(await run().then(() => "no error", named)).toBe(expected);
    expect(existsSync(at("a"))).toBe(false);
  });
});
