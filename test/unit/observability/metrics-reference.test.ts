import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { metricsReference } from "../../support/metrics-reference.ts";

const root = new URL("../../../", import.meta.url);

it("docs/metrics-reference.md is what `npm run docs` writes", async () => {
  await expect(metricsReference()).toMatchFileSnapshot(
    fileURLToPath(new URL("docs/metrics-reference.md", root)),
  );
});

it("every family that the sources name is on it", () => {
  const page = metricsReference();
  const folder = new URL("src/observability/", root);
  const named = readdirSync(folder).flatMap((file) =>
    Array.from(
      readFileSync(new URL(file, folder), "utf8").matchAll(/\bname: "([a-z_]+_[a-z_]+)"/g),
      ([, name = ""]) => name,
    ),
  );
  expect(named.length).toBeGreaterThan(40);
  expect(named.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
