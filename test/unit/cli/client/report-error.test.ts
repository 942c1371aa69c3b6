import { afterEach, expect, it, vi } from "vitest";
import { ConnectError } from "../../../../packages/client/src/http/upstream/connect-error.ts";
import { reportError } from "../../../../src/cli/client/report-error.ts";

afterEach(() => vi.restoreAllMocks());

it.each([
  ["Unauthorized", "Unauthorized", "error: You must be logged in to the server (Unauthorized)\n"],
  ["Forbidden", "no", "Error from server (Forbidden): no\n"],
])("says %s in kubectl's words", (reason, message, expected) => {
  const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const apiStatus = { status: "Failure", reason, message };
  expect(reportError(new ConnectError("response", message, { apiStatus }))).toBe(1);
  expect(write).toHaveBeenCalledWith(expected);
});
