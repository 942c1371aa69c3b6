import { expect, it } from "vitest";
import { SessionsApi } from "../../../src/session-api/sessions-api.ts";
import { listedSession } from "../../support/listed-session.ts";

it("a session whose process does not say its command line is not joined, as no rule can judge it", async () => {
  const listed = listedSession(1);
  let facts: { command: string[]; groups: string[] } | undefined;
  const api = new SessionsApi({
    listEverywhere: async () => ({ sessions: [listed], partial: [] }),
    end: async () => "unknown",
    output: async () => "unknown",
    type: async () => "unknown",
    facts: async () => facts,
  });
  const path = `/apis/sluice.dev/v1alpha1/namespaces/${listed.namespace}/streamingsessions/${listed.id}/attach`;
  await expect(api.sessionAt(path)).rejects.toMatchObject({ code: 503 });
  facts = { command: ["sh"], groups: [] };
  expect((await api.sessionAt(path)).spec.command).toEqual(["sh"]);
  api.stop();
});
