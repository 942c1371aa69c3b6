import { expect, it } from "vitest";
import { SessionError } from "../../../packages/client/src/sessions/session-error.ts";
import { type CommandSession, expectBytes, Violation } from "../../../packages/lab/src/conformance/judge.ts";
import { RecordedOutput } from "../../../packages/lab/src/conformance/recorded-output.ts";

type CommandResult = Awaited<CommandSession["ended"]>;

const ended = (outcome: CommandResult["outcome"], isOrderly: boolean): CommandResult => ({
  outcome,
  isOrderly,
  error: new SessionError("connection-lost", "the connection closed (1006)"),
  closeDelayMs: undefined,
});

it.each([
  ["a success", ended({ type: "success" }, true), "; the status is success"],
  [
    "a broken connection",
    ended({ type: "missing" }, false),
    "; no status arrived: the connection closed (1006)",
  ],
  [
    "a late break",
    ended({ type: "exit", code: 3, message: "" }, false),
    "; the status is exit code 3, then: the connection closed (1006)",
  ],
  ["nothing that is known", undefined, ""],
])("an output that is cut is reported with its session's end: %s", (_end, result, text) => {
  const output = new RecordedOutput();
  output.add(Buffer.from("abc"));
  expect(() => expectBytes("the output", output, 5, result)).toThrow(
    new Violation(`the output: 3 of 5 bytes arrived, the last 2 are missing${text}`),
  );
});
