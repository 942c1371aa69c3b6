import { describe, expect, it } from "vitest";
import { readObject } from "../../../../src/api/strategy/read-object.ts";
import { FeatureGates } from "../../../../src/config/feature-gates.ts";
import { recordedLines } from "../../../support/recorded-objects.ts";
import { answeredTexts, ourTexts, type ValidationAnswer } from "../../../support/validation-texts.ts";

interface RecordedAnswer {
  readonly object: { readonly kind: string; readonly status?: unknown; readonly spec?: unknown };
  readonly answer: ValidationAnswer;
}

const recorded = recordedLines("validation") as readonly RecordedAnswer[];

/** A create ignores the status and refuses debugging containers. A manifest holds what `kubectl get` wrote: here the one is checked, the other accepted. */
function isJudgedOtherwise({ object, answer }: RecordedAnswer): boolean {
  return object.status !== undefined || (answer.message ?? "").endsWith("cannot be set on create");
}

describe("what a real API server answers to a dry run", () => {
  it("is the same here but for three objects of all", () => {
    expect(recorded.length).toBeGreaterThan(460);
    expect(recorded.filter(isJudgedOtherwise)).toHaveLength(3);
  });

  it.each(
    recorded
      .filter((row) => !isJudgedOtherwise(row))
      .map(({ object, answer }, index) => ({ line: index + 1, kind: object.kind, object, answer })),
  )("line $line: a $kind", ({ object, answer }) => {
    const reading = readObject(object, FeatureGates.defaults, "Strict");
    expect(ourTexts(reading)).toEqual(answeredTexts(answer));
  });
});
