import type { readObject } from "../../src/api/strategy/read-object.ts";

type ObjectReading = ReturnType<typeof readObject>;

/** The parts of an API server's Status that are compared. */
export interface ValidationAnswer {
  readonly code: number;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly { field: string; message: string }[] };
}

/**
 * The sentences of an answer: a 422 has one for each cause, in the order in which they were found.
 */
export function answeredTexts({ code, message = "", details }: ValidationAnswer): string[] {
  if (code === 201) return [];
  if (code !== 422) return [message];
  const causes = details?.causes ?? [];
  const subject = message.slice(0, message.indexOf(" is invalid: "));
  return causes.map((cause) => `${subject} is invalid: ${cause.field}: ${cause.message}`);
}

/** Our texts, joined as the API server does. The nearest name is our own addition. */
export function ourTexts(reading: ObjectReading): string[] {
  if (reading.isValid) return [];
  const texts = reading.problems.map(({ message }) => message.replace(/; did you mean "[^"]*"\?$/, ""));
  const [, prefix] = texts[0]?.match(/^(.*: strict decoding error: )/) ?? [];
  if (prefix === undefined) return texts;
  return [prefix + texts.map((text) => text.slice(prefix.length)).join(", ")];
}
