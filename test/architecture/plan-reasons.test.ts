import { expect, it } from "vitest";
import { PLAN_REASONS } from "../../src/sessions/plan.ts";
import { readSource, sourceFiles, withoutComments } from "./source-files.ts";

/** Code asks a plan's fields; a reason is a sentence for people. */
it("reasons of plans are named where plans and verdicts are made, and compared nowhere", () => {
  const makers = /^src\/(?:sessions\/plan|legs\/agent\/agent-leg|kubernetes\/[a-z-]+)\.ts$/;
  const reason = `"(?:${Object.keys(PLAN_REASONS).join("|")})"`;
  const named = new RegExp(reason);
  const compared = new RegExp(
    `(?:[!=]== |case |(?:has|includes|startsWith)\\()${reason}|plan\\.reason\\b *(?:[!=]==|\\.)`,
  );
  const asked = sourceFiles().flatMap((file) =>
    withoutComments(readSource(file))
      .split("\n")
      .filter((line) => compared.test(line) || (!makers.test(file) && named.test(line)))
      .map((line) => `${file}: ${line.trim()}`),
  );
  expect(asked).toEqual([]);
});
