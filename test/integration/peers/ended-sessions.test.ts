import { describe, expect, it, vi } from "vitest";
import type { AdminSession } from "../../../src/admin/admin-server.ts";
import { newSessionId, replicaOfSession } from "../../../src/sessions/session-id.ts";
import { eventually } from "../../support/eventually.ts";
import { TESTER_TOKEN } from "../../support/gateway-files.ts";
import { authorityOf, type RunningWorkers, readJson, startWorkerReplicas } from "../../support/replicas.ts";
import { startSpdyExec } from "../../support/spdy-exec-client.ts";
import { V5Client } from "../../support/v5-client.ts";

/** Six processes start, on machines that are busy with other tests. */
vi.setConfig({ testTimeout: 120_000 });

const HEADERS = { Authorization: `Bearer ${TESTER_TOKEN}` };
const MESSAGE = "the session was ended by cleo: production freeze";
const STATUS = { metadata: {}, status: "Failure", message: MESSAGE, reason: "Forbidden", code: 403 };

async function sessionsOf({ adminUrl }: RunningWorkers, count: number): Promise<readonly AdminSession[]> {
  return eventually(`${count} sessions run`, async () => {
    const sessions = (await readJson(`${adminUrl}/debug/sessions`)) as AdminSession[];
    return sessions.length === count && sessions;
  });
}

interface ApiList {
  readonly items: readonly { readonly metadata: { readonly name: string } }[];
  readonly metadata: { readonly continue?: string };
}

describe("a session of a worker of a replica", () => {
  it("is ended by its id from either replica's primary, and its client sees the reason", async () => {
    const [one, other] = await startWorkerReplicas();
    const query = "stdin=true&stdout=true&command=cat";
    const clients = [1, 2, 3].map(() => new V5Client(authorityOf(one), query, "exec", HEADERS));
    await Promise.all(clients.map(({ opened }) => opened));
    const spdy = await startSpdyExec(authorityOf(one), HEADERS, "cat");
    const sessions = await sessionsOf(one, 4);
    expect(new Set(sessions.map(({ worker }) => worker))).toEqual(new Set([0, 1]));
    const request = { message: MESSAGE, status: STATUS };
    for (const [index, { id }] of sessions.entries()) {
      const from = index % 2 === 0 ? other : one;
      expect(await from.endSession({ id, ...request })).toBe("ended");
      await sessionsOf(one, 3 - index);
      expect(await from.endSession({ id, ...request })).toBe("unknown");
    }
    for (const { done } of clients) {
      const { status, closeCode } = await done;
      expect([JSON.parse(status), closeCode]).toEqual([STATUS, 1000]);
    }
    await eventually("the SPDY client has its Status", () => spdy.received.error !== "");
    expect(JSON.parse(spdy.received.error)).toEqual(STATUS);
    spdy.socket.destroy();
    for (const id of [newSessionId("ffffffff"), "0b0f6a52-3f0e-4b9c-9d7c-5f3a3f0e4b9c"])
      expect(await one.endSession({ id, ...request })).toBe("unknown");
    const replica = replicaOfSession(sessions[0]?.id ?? "") as string;
    expect(await other.endSession({ id: newSessionId(replica), ...request })).toBe("unknown");
  });

  it("is listed, and ended by its name, by the API of another replica", async () => {
    const [one, other] = await startWorkerReplicas();
    const query = "stdin=true&stdout=true&command=cat";
    const clients = [1, 2, 3].map(() => new V5Client(authorityOf(one), query, "exec", HEADERS));
    await Promise.all(clients.map(({ opened }) => opened));
    await sessionsOf(one, 3);
    const collection = `${other.apiServerUrl}/apis/sluice.dev/v1alpha1/namespaces/default/streamingsessions`;
    const ask = async (url: string, init: RequestInit = {}): Promise<ApiList> =>
      (await fetch(url, { ...init, headers: HEADERS })).json() as Promise<ApiList>;
    const names = async () => (await ask(collection)).items.map(({ metadata }) => metadata.name);
    const all = await names();
    expect(all).toHaveLength(3);
    // Any worker of the replica may answer the next page.
    const paged: string[] = [];
    for (let next = ""; ; ) {
      const page = await ask(`${collection}?limit=1&continue=${next}`);
      paged.push(...page.items.map(({ metadata }) => metadata.name));
      next = page.metadata.continue ?? "";
      if (next === "") break;
    }
    expect(paged).toEqual(all);
    for (const name of all) {
      const url = `${collection}/${name}`;
      expect(await ask(url)).toMatchObject({
        spec: { command: ["cat"], user: { groups: expect.arrayContaining(["dev"]) } },
        status: { replica: replicaOfSession(name) },
      });
      const view = fetch(`${url}/output`, { headers: HEADERS });
      expect((await view).status).toBe(200);
      expect(await ask(`${url}?reason=freeze`, { method: "DELETE" })).toMatchObject({ status: "Success" });
      expect(await ask(url)).toMatchObject({ code: 404 });
      expect((await (await view).text()).split("\n")[0]).toContain(`"title":"default/web/`);
    }
    for (const { done } of clients)
      expect(JSON.parse((await done).status)).toMatchObject({
        message: "the session was ended by tester: freeze",
      });
    expect(await names()).toEqual([]);
  });
});
