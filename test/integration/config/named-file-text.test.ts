import { execFileSync } from "node:child_process";
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readNamedFile, readUpTo } from "../../../packages/client/src/config/named-file-text.ts";
import { systemErrorReason, systemErrorText } from "../../../packages/client/src/config/system-error.ts";
import { loadKubeconfig } from "../../../packages/client/src/kubernetes/kubeconfig.ts";
import { readSigningKey } from "../../../src/recording/signing-key.ts";
import { readS3Credentials } from "../../../src/recording/storage/s3/s3-store.ts";
import { eventually } from "../../support/eventually.ts";

// The bound under test.
const MAX_NAMED_FILE_BYTES = 16 * 1024 * 1024;

let folder = "";
const at = (name: string) => path.join(folder, name);
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-named-file-"));
  execFileSync("mkfifo", [at("fifo")]);
});
afterEach(() => rmSync(folder, { recursive: true }));

const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe("a file named in the configuration", () => {
  it.each([
    ["a named pipe", () => at("fifo"), "open", "is a named pipe"],
    ["a folder", () => folder, "read", "is a directory"],
    ["a device that does not end", () => "/dev/zero", "read", "the file has more than 16777216 bytes"],
    ["a file past the bound", () => at("large"), "read", "the file has more than 16777216 bytes"],
  ])("is refused if it is %s, and the error names it", async (_what, file, call, reason) => {
    writeFileSync(at("large"), "");
    // A sparse file: reading it would take seconds.
    truncateSync(at("large"), 128 * MAX_NAMED_FILE_BYTES);
    for (const read of [readUpTo, readNamedFile]) {
      const error = await failureOf(read(file()));
      expect(systemErrorReason(error)).toBe(reason);
      expect(systemErrorText(error)).toBe(`${call} ${file()}: ${reason}`);
    }
  });

  it.each([
    ["readUpTo", readUpTo],
    ["readNamedFile", readNamedFile],
  ])("may be an open pipe, named by its descriptor: %s", async (_name, read) => {
    const descriptor = openSync(at("fifo"), constants.O_RDWR);
    writeSync(descriptor, "text");
    const text = read(`/proc/self/fd/${descriptor}`);
    await eventually("it is open for reading, too", () => timesOpen(at("fifo")) === 2);
    closeSync(descriptor);
    expect(String(await text)).toBe("text");
  });
});

function timesOpen(file: string): number {
  const targets = readdirSync("/proc/self/fd").map((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`);
    } catch {
      return undefined;
    }
  });
  return targets.filter((target) => target === file).length;
}

describe("a named pipe without a writer", () => {
  const server = { server: "https://127.0.0.1:1" };
  it.each([
    ["tokenFile", { user: { tokenFile: "fifo" } }],
    ["certificate-authority", { cluster: { ...server, "certificate-authority": "fifo" } }],
    ["client-certificate", { user: { "client-certificate": "fifo", "client-key": "fifo" } }],
  ])("is refused as a kubeconfig's %s", async (_field, { user = {}, cluster = server }: Entries) => {
    const file = at("config");
    const contexts = [{ name: "a", context: { cluster: "a", user: "a" } }];
    const entries = { contexts, clusters: [{ name: "a", cluster }], users: [{ name: "a", user }] };
    const kind = { apiVersion: "v1", kind: "Config", "current-context": "a" };
    writeFileSync(file, JSON.stringify({ ...kind, ...entries }));
    const options = { environment: {} };
    const headers = async () => (await loadKubeconfig(file, undefined, options)).headers();
    await expect(headers()).rejects.toThrow(`open ${at("fifo")}: is a named pipe`);
  });

  it("is refused as a store's credentials, and as a signing key", async () => {
    await expect(readS3Credentials(at("fifo"), {})).rejects.toThrow(`${at("fifo")} is a named pipe`);
    await expect(readSigningKey(at("recordings"), at("fifo"))).rejects.toThrow("is a named pipe");
  });

  it("is refused in the place of a folder's own signing key", async () => {
    execFileSync("mkfifo", [at("signing-key.pem")]);
    await expect(readSigningKey(folder, undefined)).rejects.toThrow("is not an Ed25519 private key");
  });

  it("is waited for as a kubeconfig, which its user gives", async () => {
    const loaded = loadKubeconfig(at("fifo"), undefined, { environment: {} });
    execFileSync("sh", ["-c", 'echo "clusters: hunter2" > "$0"', at("fifo")]);
    await expect(loaded).rejects.toThrow("clusters: must be a list");
  });
});

interface Entries {
  readonly user?: object;
  readonly cluster?: object;
}
