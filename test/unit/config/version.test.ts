import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { SLUICE_VERSION } from "../../../packages/client/src/config/version.ts";

const root = new URL("../../../", import.meta.url);
const versionIn = (file: string): string => JSON.parse(readFileSync(new URL(file, root), "utf8")).version;

describe("the version", () => {
  it("is that of package.json, and of every package that is published with it", () => {
    const packages = readdirSync(new URL("packages", root)).map((name) => `packages/${name}/package.json`);
    expect(packages).not.toEqual([]);
    for (const file of ["package.json", ...packages])
      expect([file, versionIn(file)]).toEqual([file, SLUICE_VERSION]);
  });
});
