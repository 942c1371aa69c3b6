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
const { run } = await import("./bundle.mjs");
const [cluster, pod, command, input] = JSON.parse(readFileSync(0, "utf8"));
const shown = [];
const end = await run(cluster, pod, command, input, (text) => shown.push(text)).catch((error) => String(error));
console.log(JSON.stringify({ shown: shown.join(""), end }));`,
  );
  demo = await startDemo();
});
afterAll(async () => {
  await demo.stop();
  rmSync(folder, { recursive: true, force: true });
});

function page(token: string | undefined, command: readonly string[], input: string): Promise<unknown> {
  const { clusters, users } = parse(readFileSync(demo.kubeconfig, "utf8"));
  const { server: url, "certificate-authority-data": authority } = clusters[0].cluster;
  const ca = path.join(folder, "ca.crt");
  writeFileSync(ca, Buffer.from(authority, "base64"));
  const asked = JSON.stringify([{ url, token: token ?? users[0].user.token }, "web", command, input]);
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
    expect(await page(undefined, command, "x".repeat(300_000))).toEqual({
      shown: expect.stringMatching(/^\s*300000\ndone\n$/),
      end: 3,
    });
  });

  it("fails with a wrong token", async () => {
    expect(await page("wrong", ["ls"], "")).toEqual({
      shown: "",
      end: "ConnectError: the WebSocket did not open; its page is not told why",
    });
  });
});
