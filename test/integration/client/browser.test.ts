import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { browserBundle } from "../../support/browser-bundle.ts";
import { type RunningDemo, startDemo } from "../../support/demo.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const WS = path.join(root, "node_modules/ws/wrapper.mjs");

let demo: RunningDemo;
let folder: string;
let bundle: string;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-browser-"));
  bundle = await browserBundle();
  writeFileSync(path.join(folder, "bundle.mjs"), bundle);
  // Node.js before 22 has no WebSocket: that of `ws` stands for it.
  writeFileSync(
    path.join(folder, "page.mjs"),
    `import { readFileSync } from "node:fs";
globalThis.WebSocket ??= (await import(${JSON.stringify(WS)})).WebSocket;
const { run, join, get } = await import("./bundle.mjs");
const [cluster, pod, job] = JSON.parse(readFileSync(0, "utf8"));
const shown = [];
const show = (text) => shown.push(text);
const leaving = new AbortController();
const showAndLeave = (text) => {
  show(text);
  leaving.abort();
};
const jobs = {
  run: ({ command, input }) => run(cluster, pod, command, input, show),
  join: ({ text }) => join(cluster, pod, text, showAndLeave, leaving.signal),
  get: ({ port, path }) => get(cluster, pod, port, path),
};
const end = await jobs[job.name](job).catch((error) => String(error));
console.log(JSON.stringify({ shown: shown.join(""), end }));`,
  );
  demo = await startDemo();
});
afterAll(async () => {
  await demo.stop();
  rmSync(folder, { recursive: true, force: true });
});

type Job =
  | { name: "run"; command: string[]; input: string }
  | { name: "join"; text: string }
  | { name: "get"; port: number; path: string };

function page(job: Job, token?: string): Promise<unknown> {
  const { clusters, users } = parse(readFileSync(demo.kubeconfig, "utf8"));
  const { server: url, "certificate-authority-data": authority } = clusters[0].cluster;
  const ca = path.join(folder, "ca.crt");
  writeFileSync(ca, Buffer.from(authority, "base64"));
  const asked = JSON.stringify([{ url, token: token ?? users[0].user.token }, "web", job]);
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: ca };
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [path.join(folder, "page.mjs")], { env }, (error, stdout) =>
      error === null ? resolve(JSON.parse(stdout)) : reject(error),
    );
    child.stdin?.end(asked);
  });
}

describe("@sluice/client/browser", () => {
  it("is bundled without anything of Node.js", () => {
    expect(bundle).not.toMatch(/["']node:|\brequire\(|\bBuffer\b|\bprocess\./);
  });

  it("has types that need no @types/node", () => {
    const file = path.join(folder, "types.mts");
    const entry = path.join(root, "packages/client/dist/browser.js");
    writeFileSync(
      file,
      `import { exec, type BrowserStreams } from ${JSON.stringify(entry)};
const streams: BrowserStreams = { stdin: new Blob(["a"]).stream(), stdout: new WritableStream<Uint8Array>() };
export const code: number = (await exec({ url: "https://a" }, { pod: "b" }, ["c"], streams)).exitCode;`,
    );
    const options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--ignoreConfig"];
    const lib = ["--lib", "es2023,dom,dom.asynciterable", "--types", ""];
    const tsc = path.join(root, "node_modules/typescript/bin/tsc");
    const { stdout } = spawnSync(process.execPath, [tsc, ...options, ...lib, file], { encoding: "utf8" });
    expect(stdout).toBe("");
  });

  it("runs a command with input to its end, and gives its exit code", async () => {
    const command = ["sh", "-c", "wc -c; echo done; exit 3"];
    expect(await page({ name: "run", command, input: "x".repeat(300_000) })).toEqual({
      shown: expect.stringMatching(/^\s*300000\ndone\n$/),
      end: 3,
    });
  });

  it("fails with a wrong token", async () => {
    expect(await page({ name: "run", command: ["ls"], input: "" }, "wrong")).toEqual({
      shown: "",
      end: "ConnectError: the WebSocket did not open; its page is not told why",
    });
  });

  it("says a text to the main process, hears it, and leaves", async () => {
    expect(await page({ name: "join", text: "a line\n" })).toEqual({
      shown: "a line\n",
      end: "SessionError: context canceled",
    });
  });

  it("reads a page from a port to the pod's end of the connection", async () => {
    expect(await page({ name: "get", port: 80, path: "/" })).toEqual({
      shown: "",
      end: expect.stringMatching(/^HTTP\/1\.[01] 200 .*Hello from pod web/s),
    });
  });

  it("gets the reason of a port that nothing listens on", async () => {
    expect(await page({ name: "get", port: 81, path: "/" })).toEqual({
      shown: "",
      end: expect.stringMatching(/^SessionError: .*81/),
    });
  });

  it("is refused a port with a wrong token", async () => {
    expect(await page({ name: "get", port: 80, path: "/" }, "wrong")).toEqual({
      shown: "",
      end: "ConnectError: the WebSocket did not open; its page is not told why",
    });
  });
});
