import { expect, it, vi } from "vitest";
import { MAX_UNANSWERED_MS } from "../../../src/session-api/output-stream.ts";
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

it("a session whose process never says where its output begins is not waited for without end", async () => {
  const listed = listedSession(1);
  const now = vi.spyOn(performance, "now");
  let asked = 0;
  const api = new SessionsApi({
    listEverywhere: async () => ({ sessions: [listed], partial: [] }),
    end: async () => "unknown",
    output: async () => {
      asked += 1;
      now.mockReturnValue(asked * 1_000);
      return { from: -1, next: -1, events: [], isOver: false };
    },
    type: async () => "unknown",
    facts: async () => ({ command: ["sh"], groups: [] }),
  });
  try {
    now.mockReturnValue(0);
    const path = `/apis/sluice.dev/v1alpha1/namespaces/${listed.namespace}/streamingsessions/${listed.id}/attach`;
    const session = await api.sessionAt(path);
    const joining = api.joinable({ ...session, spec: { ...session.spec, stdin: true } }, "j", "ben");
    await expect(joining).rejects.toMatchObject({ code: 503 });
    expect(asked).toBe(MAX_UNANSWERED_MS / 1_000 + 1);
  } finally {
    now.mockRestore();
    api.stop();
  }
});
