import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterEach, describe, expect, it } from "vitest";
import { sluiceCommand } from "../../support/built-program.ts";

const parent = mkdtempSync(path.join(tmpdir(), "sluice-demo-once-"));
afterEach(() => rmSync(parent, { recursive: true, force: true }));

describe("sluice demo --once", () => {
  it("shows every plan, bridge included, and leaves nothing behind", async () => {
    const folder = path.join(parent, "demo");
    const { stdout } = await promisify(execFile)(...sluiceCommand("demo", "--once", "--dir", folder));
    const rows = stdout.split("\n").filter((line) => /^ {2}(?:exec|port-forward), /.test(line));
    const plans = rows.map((row) => / (translate|tunnel|pass-through|bridge) +ok, \d+ ms$/.exec(row)?.[1]);
    const counted = new Map<string | undefined, number>();
    for (const plan of plans) counted.set(plan, (counted.get(plan) ?? 0) + 1);
    // A row that failed has no plan here.
    expect(Object.fromEntries(counted)).toEqual({
      ...{ translate: 1, tunnel: 1 },
      ...{ "pass-through": 10, bridge: 3 },
    });
    expect(readdirSync(parent)).toEqual([]);
  });
});
