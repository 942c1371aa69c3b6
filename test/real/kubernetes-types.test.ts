import { spawnSync } from "node:child_process";
import path from "node:path";
import { expect, it } from "vitest";
import { describeReal } from "../support/real-parts.ts";

const root = path.resolve(import.meta.dirname, "../..");

describeReal("go", "the types of Kubernetes' fields", () => {
  it("are those of the pinned release", { timeout: 300_000 }, () => {
    const { status, stderr } = spawnSync(
      process.execPath,
      [path.join(root, "scripts/build-kubernetes-types.mjs"), "--check"],
      { encoding: "utf8" },
    );
    expect(status, stderr).toBe(0);
  });
});
