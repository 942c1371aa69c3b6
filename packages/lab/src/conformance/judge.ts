import type { CommandResult } from "./command-session.ts";
import type { RecordedOutput } from "./recorded-output.ts";

const QUOTED_CHARACTERS = 120;

/** Expects that the command ended with this code, the server reported it, and the session ended properly. */
export function expectExit(result: CommandResult, code: number): void {
  expectStatus(result, code);
  if (!result.isOrderly)
    throw new Violation(`the status arrived, but the session ended with: ${result.error.message}`);
}

/** Expects the same status, however the session ended afterwards. */
export function expectStatus({ outcome, error }: CommandResult, code: number): void {
  const expected = code === 0 ? "success" : `exit code ${code}`;
  switch (outcome.type) {
    case "missing":
      throw new Violation(`no status arrived, ${expected} was expected: ${error.message}`);
    case "success":
      if (code !== 0) throw new Violation(`success was reported, ${expected} was expected`);
      return;
    case "exit":
      if (outcome.code !== code)
        throw new Violation(`exit code ${outcome.code} was reported, ${expected} was expected`);
      return;
    case "failure":
      throw new Violation(`a failure was reported, ${expected} was expected: ${outcome.message}`);
  }
}

export function expectText(what: string, actual: string, expected: string): void {
  if (actual !== expected) throw new Violation(`${what} is ${quoted(actual)}, not ${quoted(expected)}`);
}

/** Expects exactly the recorded bytes, and no more. `result`: names the end of an output that is cut. */
export function expectBytes(
  what: string,
  output: RecordedOutput,
  byteLength: number,
  result?: CommandResult,
): void {
  if (output.firstWrong !== -1)
    throw new Violation(`${what}: the byte at offset ${output.firstWrong} is wrong`);
  if (output.byteLength !== byteLength) {
    const lost = byteLength - output.byteLength;
    const difference = lost > 0 ? `the last ${lost} are missing` : `${-lost} too many`;
    const end = result === undefined ? "" : `; ${endOf(result)}`;
    throw new Violation(`${what}: ${output.byteLength} of ${byteLength} bytes arrived, ${difference}${end}`);
  }
}

function endOf({ outcome, isOrderly, error }: CommandResult): string {
  if (outcome.type === "missing") return `no status arrived: ${error.message}`;
  const status = outcome.type === "exit" ? `exit code ${outcome.code}` : outcome.type;
  return isOrderly ? `the status is ${status}` : `the status is ${status}, then: ${error.message}`;
}

function quoted(text: string): string {
  return JSON.stringify(text.length > QUOTED_CHARACTERS ? `${text.slice(0, QUOTED_CHARACTERS)}…` : text);
}

/** The endpoint does not meet the requirement. The message names the observation and the expectation. */
export class Violation extends Error {
  override readonly name = "Violation";
}

/** The case cannot judge this endpoint. The message says why. */
export class SkippedCase extends Error {
  override readonly name = "SkippedCase";
}
