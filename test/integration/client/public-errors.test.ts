import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable, Writable } from "node:stream";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { parse } from "yaml";
import * as browser from "../../../packages/client/src/browser.ts";
import * as client from "../../../packages/client/src/index.ts";
import { type RunningDemo, startDemo } from "../../support/demo.ts";

const { copyFrom, copyTo, exec, forward, getObject, openCluster, readLog, Target } = client;
const folder = mkdtempSync(path.join(tmpdir(), "sluice-errors-"));
const at = (name: string): string => path.join(folder, name);
let demo: RunningDemo;
let cluster: client.Cluster;
let page: browser.BrowserCluster;
beforeAll(async () => {
  demo = await startDemo();
  cluster = await openCluster(demo.kubeconfig);
  writeFileSync(at("file"), "text");
  const { clusters, users } = parse(readFileSync(demo.kubeconfig, "utf8"));
  const { server: url, "certificate-authority-data": authority } = clusters[0].cluster;
  page = { url, token: users[0].user.token };
  // A page's WebSocket, whose browser trusts the demo.
  const ca = Buffer.from(authority, "base64");
  class PageSocket extends WebSocket {
    constructor(address: string, protocols: string[]) {
      super(address, protocols, { ca });
    }
  }
  vi.stubGlobal("WebSocket", PageSocket);
});
afterAll(async () => {
  vi.unstubAllGlobals();
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
const aborted = (): AbortController => {
  const controller = new AbortController();
  controller.abort();
  return controller;
};
const ended = (): AbortSignal => aborted().signal;
/** Runs a session that echoes its input, and aborts it at the echo. */
async function abortAtEcho(
  run: (input: Readable, output: Writable, signal: AbortSignal) => Promise<unknown>,
): Promise<unknown> {
  const leaving = new AbortController();
  const input = new Readable({ read() {} });
  input.push("text");
  const write = (_chunk: unknown, _encoding: string, done: () => void): void => {
    leaving.abort();
    done();
  };
  return await run(input, new Writable({ write }), leaving.signal);
}
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
const badInput = (): ReadableStream =>
  new ReadableStream({ pull: () => Promise.reject(new Error("the disk failed")) });
const fullOutput = (): WritableStream =>
  new WritableStream({ write: () => Promise.reject(new Error("full")) });
const takeAll = (): WritableStream => new WritableStream({});
/** Reads a port until it ends. */
const port = async (name: string, number: number, leaving?: AbortController): Promise<void> => {
  const { signal } = leaving ?? {};
  const { readable } = await browser.openPort(page, { pod: name }, number, { signal });
  leaving?.abort();
  await readable.pipeTo(takeAll());
};
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
      () => abortAtEcho((stdin, stdout, signal) => exec(cluster, web, ["cat"], { stdin, stdout, signal })),
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
    ["a page's exec in no pod", "ConnectError handshake", () => browser.exec(page, nobody, ["true"])],
    [
      "a page's exec of no program",
      "SessionError remote-failure",
      () => browser.exec(page, web, ["no-such-program"], { stdout: takeAll() }),
    ],
    [
      "a page's exec, bad input",
      "SessionError input-failed",
      () => browser.exec(page, web, ["cat"], { stdin: badInput() }),
    ],
    [
      "a page's exec, bad output",
      "SessionError output-failed",
      () => browser.exec(page, web, ["yes"], { stdout: fullOutput() }),
    ],
    ["attach to no pod", "ConnectError handshake", () => browser.attach(page, nobody)],
    [
      "attach on no server",
      "ConnectError handshake",
      () => browser.attach({ url: "http://127.0.0.1:1" }, web, { stdout: takeAll() }),
    ],
    ["attach, aborted before", "ConnectError aborted", () => browser.attach(page, web, { signal: ended() })],
    [
      "attach, aborted",
      "SessionError aborted",
      () =>
        abortAtEcho((input, output, signal) =>
          browser.attach(page, web, {
            stdin: Readable.toWeb(input) as ReadableStream,
            stdout: Writable.toWeb(output),
            signal,
          }),
        ),
    ],
    ["a port of no pod", "ConnectError handshake", () => port("nobody", 80)],
    ["a port, aborted before", "ConnectError aborted", () => port("web", 80, aborted())],
    ["a port that nothing listens on", "SessionError remote-failure", () => port("web", 1)],
    ["a port, aborted", "SessionError aborted", () => port("web", 80, new AbortController())],
  ])("%s: %s", async (_, expected, run) => {
    expect(await run().then(() => "no error", named)).toBe(expected);
    expect(existsSync(at("a"))).toBe(false);
  });
});
