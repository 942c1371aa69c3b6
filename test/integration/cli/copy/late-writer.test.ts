import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { noProgress } from "../../../../packages/client/src/copy/copy-context.ts";
import type { RemotePath } from "../../../../packages/client/src/copy/remote-path.ts";
import { type RemoteShell, remoteFailure } from "../../../../packages/client/src/copy/remote-shell.ts";
import { uploadFile } from "../../../../packages/client/src/copy/upload-file.ts";
import { FINISH } from "../../../../packages/client/src/copy/upload-scripts.ts";
import { SessionError } from "../../../../packages/client/src/sessions/session-error.ts";
import type { ShellStreams } from "../../../support/local-shell.ts";

const CONTENT = randomBytes(512 * 1024);
/** Less than half: the next command sends a part only. */
const FEW_BYTES = 100 * 1024;
const MOST_BYTES = 400 * 1024;
const NAME = "there";
const PARTIAL = `.${NAME}.sluice-partial`;

let folder: string;
let remoteFolder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-late-"));
  remoteFolder = path.join(folder, "container");
  mkdirSync(remoteFolder);
  writeFileSync(path.join(folder, "file"), CONTENT);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Faults {
  /** The first writer's connection is cut behind these bytes. */
  readonly cutAfterBytes?: number;
  /** The writers, counted from 1, whose file another one writes to as well. */
  readonly disturbed: readonly number[];
  readonly tools?: RemotePath["tools"];
  /** The bytes of another writer, which removes the file behind its check and writes its own. */
  readonly replacedBy?: string;
}

/** Uploads to a container whose commands run here. */
async function upload({ cutAfterBytes, disturbed, tools = new Set(["sha256sum"]), replacedBy }: Faults) {
  const writers: string[] = [];
  const run = (script: string, args: readonly string[], input = Buffer.alloc(0)) => {
    const { status, stdout, stderr } = spawnSync("sh", ["-c", script, "sh", ...args], { input });
    return { exitCode: status ?? -1, stdout: stdout.toString(), stderr: stderr.toString() };
  };
  const shell = {
    script: async (script: string, args: readonly string[], { stdin }: ShellStreams = {}) => {
      if (stdin === undefined) return run(script, args);
      const parts: Uint8Array[] = [];
      for await (const part of stdin as AsyncIterable<Uint8Array>) parts.push(Buffer.from(part));
      writers.push(path.basename(args[0] as string));
      const isCut = cutAfterBytes !== undefined && writers.length === 1;
      const other = Buffer.from(disturbed.includes(writers.length) ? "of another writer" : "");
      const result = run(
        script,
        args,
        Buffer.concat([other, ...parts]).subarray(0, isCut ? cutAfterBytes : undefined),
      );
      if (isCut) throw new SessionError("connection-lost", "gone");
      return result;
    },
    cleanUp: async (script: string, args: readonly string[]) => void run(script, args),
    mustRun: async (script: string, args: readonly string[]) => {
      if (script === FINISH && replacedBy !== undefined) writeFileSync(args[0] as string, replacedBy);
      const result = run(script, args);
      if (result.exitCode !== 0) throw remoteFailure(result);
      return result.stdout;
    },
  } as unknown as RemoteShell;
  const destination = path.join(remoteFolder, NAME);
  const remote: RemotePath = {
    kind: "absent",
    path: destination,
    size: 0,
    version: "",
    mode: undefined,
    tools,
    hasPartial: false,
  };
  const silent = { note: () => {}, warn: () => {}, startProgress: noProgress };
  const options = { shell, ...silent, retries: 2, verifies: true, preservesMode: false };
  const failure = await uploadFile(path.join(folder, "file"), destination, remote, options).then(
    () => undefined,
    (error: Error) => error,
  );
  return { writers, failure, left: readdirSync(remoteFolder) };
}

describe("an upload whose file an earlier command of it writes to as well", () => {
  it.each([
    ["sizes", FEW_BYTES],
    ["hashes", MOST_BYTES],
  ])("begins anew under another name when the %s differ after an interruption", async (_what, cutAfterBytes) => {
    const { writers, failure, left } = await upload({ cutAfterBytes, disturbed: [2] });
    expect(failure).toBeUndefined();
    expect(writers.slice(0, 2)).toEqual([PARTIAL, PARTIAL]);
    expect(writers[2]).toMatch(/^\.there\.sluice-partial\.[0-9a-f]{8}$/);
    expect(left).toEqual([NAME]);
    expect(readFileSync(path.join(remoteFolder, NAME)).equals(CONTENT)).toBe(true);
  });

  it("fails when they differ again", async () => {
    const { writers, failure, left } = await upload({ cutAfterBytes: MOST_BYTES, disturbed: [2, 3] });
    expect(failure).toMatchObject({ code: "mismatch" });
    expect(writers).toHaveLength(3);
    expect(left).toEqual([]);
  });

  it("fails at once when it was not interrupted", async () => {
    const { writers, failure, left } = await upload({ disturbed: [1] });
    expect(failure).toMatchObject({ code: "mismatch" });
    expect(writers).toHaveLength(1);
    expect(left).toEqual([]);
  });

  it("does not put another writer's part in place", async () => {
    const { failure, left } = await upload({
      cutAfterBytes: MOST_BYTES,
      disturbed: [],
      replacedBy: "a part",
    });
    expect(failure).toMatchObject({ code: "remote" });
    expect(failure?.message).toContain("was written to again");
    expect(left).toEqual([]);
  });

  it("leaves nothing of its attempts where nothing can check them", async () => {
    const { failure, left } = await upload({ cutAfterBytes: MOST_BYTES, disturbed: [], tools: new Set() });
    expect(failure).toBeUndefined();
    expect(left).toEqual([NAME]);
  });
});
