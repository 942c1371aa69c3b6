import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { typePage } from "../../support/typed-page.ts";

const has = (program: string): boolean => spawnSync(program, ["version"]).error === undefined;
const missing = ["bash", "openssl", "curl"].filter((program) => !has(program));

/** Each a page whose commands are typed as they stand there. */
const PAGES = ["read-metrics.md", "refused.md", "rotate-certificates.md", "sizing.md", "upgrade.md"];

describe.skipIf(missing.length > 0)(
  `how-to pages, typed (missing: ${missing.join(", ") || "nothing"})`,
  () => {
    it.concurrent.each(PAGES)("docs/%s", async (page) => {
      const { status, blocks } = await typePage(page);
      expect(blocks.length).toBeGreaterThan(0);
      expect(blocks.flatMap(({ missing, printed }) => missing.map((line) => ({ line, printed })))).toEqual(
        [],
      );
      expect({ status, last: status === 0 ? "" : blocks.at(-1)?.printed }).toEqual({ status: 0, last: "" });
    }, 120_000);
  },
);
