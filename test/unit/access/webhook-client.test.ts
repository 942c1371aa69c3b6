import { expect, it } from "vitest";
import { loggedReviews } from "../../../src/access/webhook-client.ts";

/** The messages of reviews with these answers, one after the other; an Error: there was none. Failures are reported as their callers do. */
async function linesOf(...answers: (number | Error)[]): Promise<string[]> {
  const lines: string[] = [];
  const log = (_fields: object, message: string) => void lines.push(message);
  const { ask, onFailure } = loggedReviews(
    async (answer) => {
      if (answer instanceof Error) throw answer;
      return { status: answer as number, body: {} };
    },
    { permission: "create reviews", failed: "it failed", logger: { info: log, warn: log, error: log } },
  );
  for (const answer of answers) {
    try {
      const { status } = await ask(answer);
      if (status > 299) throw new Error(`answered with ${status}`);
    } catch (error) {
      onFailure(error as Error);
    }
  }
  return lines;
}

const LACKS = "the gateway's account lacks permissions: see `sluice rbac`";
const AGAIN = "the gateway's account has the permission again";

it("logs a refused account once, and its end", async () => {
  expect(await linesOf(403, 403, 403, 201, 201, 403)).toEqual([LACKS, AGAIN, LACKS]);
});

it("logs other failures each, also behind a refusal", async () => {
  expect(await linesOf(new Error("away"), 500)).toEqual(["it failed", "it failed"]);
  expect(await linesOf(403, new Error("away"), 500, 201)).toEqual([LACKS, "it failed", "it failed"]);
});
