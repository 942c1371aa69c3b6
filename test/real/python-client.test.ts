import { execFile, spawnSync } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningDemo, startDemo } from "../support/demo.ts";
import { freePorts } from "../support/http/loopback.ts";
import { CLIENT_CHECKS } from "./client-checks.ts";

/** An interpreter that can import the clients, such as one of a virtual environment. */
const { SLUICE_PYTHON: python = "python3" } = process.env;

const { forwards, upload, ...COMMANDS } = CLIENT_CHECKS;
/** What each client can do: kr8s sends no input but over v5, which it does not offer, and lightkube forwards no ports. */
const CLIENTS: readonly (readonly [name: string, script: readonly string[], checks: object])[] = [
  ["kubernetes", ["kubernetes_client.py"], CLIENT_CHECKS],
  ["kubernetes_asyncio", ["other_clients.py", "kubernetes_asyncio"], CLIENT_CHECKS],
  ["lightkube", ["other_clients.py", "lightkube"], { ...COMMANDS, upload }],
  ["kr8s", ["other_clients.py", "kr8s"], { ...COMMANDS, forwards }],
];

/** Undefined if it cannot be imported. */
function versionOf(name: string): string | undefined {
  const program = `import ${name}; from importlib.metadata import version; print(version("${name}"))`;
  const { status, stdout } = spawnSync(python, ["-c", program], { encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
}
const versions = CLIENTS.map(([name]) => versionOf(name));

describe.skipIf(versions.every((version) => version === undefined))("clients of Python", () => {
  let demo: RunningDemo;
  beforeAll(async () => {
    demo = await startDemo();
  }, 60_000);
  afterAll(() => demo?.stop());

  CLIENTS.forEach(([name, [script = "", ...words], checks], index) => {
    const version = versions[index];
    const title = `${name} ${version ?? `(needs pip install ${name} in $SLUICE_PYTHON)`}`;
    it.skipIf(version === undefined).each(["web", "web-ws"])(
      `${title} has what it can do of exit codes, 5 MB each way and 20 forwards of %s`,
      async (pod) => {
        const file = path.join(import.meta.dirname, "python", script);
        // kr8s' own choice is a port that another connection may get before it listens.
        const [port] = words.length === 0 ? [] : await freePorts(1);
        const args = [...words, demo.kubeconfig, pod, ...(port === undefined ? [] : [String(port)])];
        const { stdout } = await promisify(execFile)(python, ["-W", "ignore", file, ...args], {
          timeout: 100_000,
        });
        expect(JSON.parse(stdout)).toEqual(checks);
      },
      120_000,
    );
  });
});
