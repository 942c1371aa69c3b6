import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import * as nodeModule from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { collect } from "../../support/kubectl.ts";
import { Sluice } from "../../support/sluice.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-start-up-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("how Node is started", () => {
  it.skipIf(!("execve" in process))("a gateway has V8's flags, in the same process", async () => {
    const demo = new Sluice({ TMPDIR: folder }).start(["demo"]);
    const stdout = collect(demo.stdout);
    try {
      await eventually("the demo is ready", () => stdout().includes("ready "));
      const words = readFileSync(`/proc/${demo.pid}/cmdline`, "utf8").split("\0");
      expect(words.slice(1, 3)).toEqual(["--no-incremental-marking", "--max-semi-space-size=8"]);
    } finally {
      demo.kill();
    }
    expect(await once(demo, "close")).toEqual([0, null]);
  });

  it.skipIf(!("enableCompileCache" in nodeModule))("a client's command keeps what was compiled", async () => {
    const args = ["exec", "-s", "http://127.0.0.1:1", "web", "--", "true"];
    expect((await new Sluice({ XDG_CACHE_HOME: folder }).run(args)).exitCode).toBe(1);
    expect(existsSync(path.join(folder, "sluice/compiled"))).toBe(true);
  });

  it("help keeps nothing", async () => {
    expect((await new Sluice({ XDG_CACHE_HOME: folder }).run(["exec", "--help"])).exitCode).toBe(0);
    expect(existsSync(path.join(folder, "sluice"))).toBe(false);
  });
});
