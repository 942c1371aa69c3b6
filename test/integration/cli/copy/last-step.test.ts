import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type CopyContext, noProgress } from "../../../../packages/client/src/copy/copy-context.ts";
import type { RemotePath } from "../../../../packages/client/src/copy/remote-path.ts";
import type { RemoteShell } from "../../../../packages/client/src/copy/remote-shell.ts";
import { uploadFile } from "../../../../packages/client/src/copy/upload-file.ts";
import { SessionError } from "../../../../packages/client/src/sessions/session-error.ts";
import type { ShellStreams } from "../../../support/local-shell.ts";

const CONTENT = "content";
const HASH = createHash("sha256").update(CONTENT).digest("hex");

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-last-"));
  writeFileSync(path.join(folder, "file"), CONTENT);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const remote: RemotePath = {
  kind: "absent",
  path: "/data",
  size: 0,
  version: "",
  mode: undefined,
  tools: new Set(["sha256sum"]),
  hasPartial: false,
};

/** A container that takes the file; the answer to the first of its last steps is lost, and `again` is the second's. */
function options(again: string): { options: CopyContext; steps: string[] } {
  const steps: string[] = [];
  const shell = {
    script: async (_script: string, _args: readonly string[], { stdin }: ShellStreams = {}) => {
      for await (const _piece of (stdin ?? []) as AsyncIterable<Uint8Array>) steps.push("sent");
      return { exitCode: 0, stdout: `${HASH}\n`, stderr: "" };
    },
    cleanUp: async () => {},
    mustRun: async (_script: string, args: readonly string[]) => {
      steps.push(args[3] ?? "");
      if (steps.length === 2) throw new SessionError("connection-lost", "gone");
      return again;
    },
  };
  const rest = { retries: 2, verifies: true, preservesMode: true, startProgress: noProgress };
  return {
    options: { shell: shell as unknown as RemoteShell, note: () => {}, warn: () => {}, ...rest },
    steps,
  };
}

describe("the last step of an upload whose answer is lost", () => {
  it.each([
    ["was not done: it is done", ""],
    ["was done: what is there is what was sent", `SHA2-256(stdin)= ${HASH}\n`],
  ])("%s", async (_what, again) => {
    const { options: given, steps } = options(again);
    await uploadFile(path.join(folder, "file"), "/data", remote, given);
    expect(steps).toEqual(["sent", "", "again"]);
  });

  it("is no success where something else is there by now", async () => {
    const { options: given } = options(`${"0".repeat(64)}  -\n`);
    const copy = uploadFile(path.join(folder, "file"), "/data", remote, given);
    await expect(copy).rejects.toMatchObject({ code: "mismatch" });
  });
});
