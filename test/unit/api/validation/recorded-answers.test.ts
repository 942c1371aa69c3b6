import { describe, expect, it } from "vitest";
import { type ObjectReading, readObject } from "../../../../src/api/validation/read-object.ts";
import { FeatureGates } from "../../../../src/config/feature-gates.ts";
import { recordedLines } from "../../../support/recorded-objects.ts";

interface RecordedAnswer {
  readonly object: { readonly kind: string; readonly status?: unknown; readonly spec?: unknown };
  readonly answer: {
    readonly code: number;
    readonly message?: string;
    readonly details?: { readonly causes?: readonly { field: string; message: string }[] };
  };
}

const recorded = recordedLines("validation") as readonly RecordedAnswer[];

/** The sentences of an answer: a 422 has one for each cause, in the order of their finding. */
function recordedTexts({ code, message = "", details }: RecordedAnswer["answer"]): string[] {
  if (code === 201) return [];
  if (code !== 422) return [message];
  const causes = details?.causes ?? [];
  const subject = message.slice(0, message.indexOf(" is invalid: "));
  return causes.map((cause) => `${subject} is invalid: ${cause.field}: ${cause.message}`);
}

/** Ours, as the API server joins them. The nearest name is our own addition. */
function ourTexts(reading: ObjectReading): string[] {
  if (reading.isValid) return [];
  const texts = reading.problems.map(({ message }) => message.replace(/; did you mean "[^"]*"\?$/, ""));
  const [, prefix] = texts[0]?.match(/^(.*: strict decoding error: )/) ?? [];
  if (prefix === undefined) return texts;
  return [prefix + texts.map((text) => text.slice(prefix.length)).join(", ")];
}

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
    expect(ourTexts(reading)).toEqual(recordedTexts(answer));
  });
});
