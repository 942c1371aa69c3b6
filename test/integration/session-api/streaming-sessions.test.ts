import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { clusterRole, clusterRoleBinding, resourceRule } from "../../support/rbac-objects.ts";
import { startTestGateway, type TestGateway } from "../../support/test-gateway.ts";
import { V5Client } from "../../support/v5-client.ts";

const PREFIX = "/apis/sluice.dev/v1alpha1";
const IN_DEFAULT = `${PREFIX}/namespaces/default/streamingsessions`;
const JSON_BODY = { method: "DELETE", headers: { "Content-Type": "application/json" } };
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

const MANIFESTS = [
  clusterRole("lister", resourceRule("list,watch,get|sluice.dev|streamingsessions,recordings")),
  clusterRoleBinding("lister", "ClusterRole/lister", "User:lister"),
  clusterRole("ender", resourceRule("delete|sluice.dev|streamingsessions")),
  clusterRole("viewer", resourceRule("get|sluice.dev|streamingsessions/output")),
  clusterRoleBinding("viewer", "ClusterRole/viewer", "User:viewer"),
  clusterRoleBinding("ender", "ClusterRole/ender", "User:ender"),
];

interface ListBody {
  readonly kind: string;
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly { readonly metadata: { readonly name: string } }[];
}

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway({
    scheme: "http",
    fakeNodes: [{}],
    manifests: MANIFESTS,
    users: [
      "admin-token,admin,1,system:masters",
      "lister-token,lister,2",
      "ender-token,ender,3",
      "viewer-token,viewer,4",
    ],
    configuration: {
      authorization: { mode: ["RBAC"] },
      audit: { log: { path: "audit.log" } },
      sessions: { reauthorizeInterval: "1s" },
    },
  });
});
afterAll(() => gateway?.stop());

async function ask(
  path: string,
  { token = "admin-token", accept = "application/json", ...init } = {} as Asked,
) {
  const headers = { Authorization: `Bearer ${token}`, Accept: accept, ...init.headers };
  const answer = await fetch(`${gateway.apiServerUrl}${path}`, { ...init, headers });
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as never };
}

interface Asked extends RequestInit {
  readonly token?: string;
  readonly accept?: string;
  readonly headers?: Record<string, string>;
}

const namesOf = ({ items }: ListBody): readonly string[] => items.map(({ metadata }) => metadata.name);

async function execs(count: number): Promise<V5Client[]> {
  const headers = { Authorization: "Bearer admin-token" };
  const clients = Array.from(
    { length: count },
    () => new V5Client(gateway.authority, "stdin=true&stdout=true&command=cat", "exec", headers),
  );
  await Promise.all(clients.map(({ opened }) => opened));
  return clients;
}

/** Ends the sessions of a test, so that the next one begins with none. */
async function leave(clients: readonly V5Client[]): Promise<void> {
  for (const { socket } of clients) socket.terminate();
  await eventually("no session runs", async () => gateway.running.sessions.list().length === 0);
}

/** Takes a user's rights away; the returned function gives them back. */
async function revoke(binding: string): Promise<() => Promise<void>> {
  const whole = gateway.files.read("cluster.json");
  const list = JSON.parse(whole) as { items: { kind: string; metadata: { name: string } }[] };
  const items = list.items.filter(
    ({ kind, metadata }) => kind !== "ClusterRoleBinding" || metadata.name !== binding,
  );
  expect(items).toHaveLength(list.items.length - 1);
  gateway.files.write("cluster.json", JSON.stringify({ ...list, items }));
  await gateway.reload();
  return async () => {
    gateway.files.write("cluster.json", whole);
    await gateway.reload();
  };
}

describe("the API group of sessions", () => {
  it("is discovered with its resource, beside the others, in each form", async () => {
    expect((await ask("/apis/sluice.dev")).body).toMatchObject({
      kind: "APIGroup",
      name: "sluice.dev",
      preferredVersion: { groupVersion: "sluice.dev/v1alpha1", version: "v1alpha1" },
    });
    expect((await ask(PREFIX)).body).toMatchObject({
      kind: "APIResourceList",
      groupVersion: "sluice.dev/v1alpha1",
      resources: [
        { name: "streamingsessions", kind: "StreamingSession", verbs: ["delete", "get", "list", "watch"] },
        { name: "streamingsessions/attach", kind: "StreamingSession", verbs: ["create", "get"] },
        { name: "streamingsessions/output", kind: "StreamingSession", verbs: ["get"] },
        { name: "recordings", kind: "Recording", verbs: ["delete", "get", "list", "watch"] },
        { name: "recordings/content", kind: "Recording", verbs: ["get"] },
      ],
    });
    const plain = (await ask("/apis")).body as { groups: { name: string }[] };
    expect(plain.groups.map(({ name }) => name)).toEqual([
      "apps",
      "authentication.k8s.io",
      "authorization.k8s.io",
      "networking.k8s.io",
      "sluice.dev",
    ]);
    for (const version of ["v2", "v2beta1"]) {
      const form = `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
      const { body, headers } = await ask("/apis", { accept: `${form},application/json` });
      const { kind, items } = body as { kind: string; items: { metadata: { name: string } }[] };
      expect([kind, items.at(-1)?.metadata.name]).toEqual(["APIGroupDiscoveryList", "sluice.dev"]);
      expect(headers.get("content-type")).toContain(`v=${version}`);
    }
  });

  it("lists and prints a session without its command line, which a get has", async () => {
    const clients = await execs(1);
    const list = (await ask(`${PREFIX}/streamingsessions`)).body as ListBody;
    expect(list.kind).toBe("StreamingSessionList");
    const [name = ""] = namesOf(list);
    // A get, whatever `watch` says, which is what the caller was judged for.
    const { body } = await ask(`${IN_DEFAULT}/${name}?watch=1`);
    expect(body).toMatchObject({
      apiVersion: "sluice.dev/v1alpha1",
      kind: "StreamingSession",
      metadata: { name, namespace: "default", uid: name, labels: { "sluice.dev/pod": "web" } },
      spec: {
        pod: "web",
        container: "main",
        subresource: "exec",
        user: { username: "admin" },
        stdin: true,
        client: { address: "127.0.0.1" },
        protocol: "v5.channel.k8s.io",
      },
      status: { phase: "Running", bytesToClient: 0 },
    });
    expect(body).toMatchObject({
      spec: { command: ["cat"], user: { groups: ["system:masters", "system:authenticated"] } },
    });
    expect(JSON.stringify(list)).not.toContain("cat");
    const table = (await ask(IN_DEFAULT, { accept: TABLE })).body as {
      columnDefinitions: { name: string }[];
      rows: { cells: string[] }[];
    };
    expect(table.columnDefinitions.slice(0, 3).map(({ name: column }) => column)).toEqual([
      "Name",
      "Pod",
      "Container",
    ]);
    expect(table.rows[0]?.cells.slice(0, 5)).toEqual([name, "web", "main", "exec", "admin"]);
    expect(table.rows[0]?.cells).toHaveLength(table.columnDefinitions.length);
    await leave(clients);
  });

  it("pages and selects", async () => {
    const clients = await execs(3);
    const all = namesOf((await ask(IN_DEFAULT)).body);
    expect(all).toHaveLength(3);
    const first = (await ask(`${IN_DEFAULT}?limit=2`)).body as ListBody;
    const token = first.metadata.continue ?? "";
    // A session that begins meanwhile is not of this list.
    const more = await execs(1);
    const second = (await ask(`${IN_DEFAULT}?limit=2&continue=${token}`)).body as ListBody;
    expect([...namesOf(first), ...namesOf(second)]).toEqual(all);
    expect(second.metadata.continue).toBeUndefined();
    const found = async (query: string) => namesOf((await ask(`${IN_DEFAULT}?${query}`)).body).length;
    expect(await found("fieldSelector=spec.pod%3Dweb,spec.user.username%3Dadmin")).toBe(4);
    expect(await found("fieldSelector=spec.user.username!%3Dadmin")).toBe(0);
    expect(await found(`fieldSelector=metadata.name%3D${all[1]}`)).toBe(1);
    expect(await found("labelSelector=sluice.dev/subresource%3Dexec")).toBe(4);
    expect(await found("labelSelector=sluice.dev/subresource%3Dattach")).toBe(0);
    expect(namesOf((await ask(`${PREFIX}/namespaces/other/streamingsessions`)).body)).toEqual([]);
    await leave([...clients, ...more]);
  });

  it("is watched: what runs, what begins, what ends", async () => {
    const clients = await execs(1);
    const controller = new AbortController();
    const headers = { Authorization: "Bearer lister-token" };
    const { metadata } = (await ask(IN_DEFAULT, { token: "lister-token" })).body as ListBody;
    const watch = await fetch(
      `${gateway.apiServerUrl}${IN_DEFAULT}?watch=1&resourceVersion=${metadata.resourceVersion}`,
      { headers, signal: controller.signal },
    );
    const events: { type: string; object: { metadata: { name: string } } }[] = [];
    const read = (async () => {
      let text = "";
      for await (const chunk of watch.body ?? []) {
        const lines = (text + Buffer.from(chunk).toString()).split("\n");
        text = lines.pop() ?? "";
        events.push(...lines.map((line) => JSON.parse(line) as (typeof events)[number]));
      }
    })().catch(() => {});
    const [second] = await execs(1);
    await eventually("the session is added", () => events.length === 1);
    second?.socket.terminate();
    await eventually("the session is deleted", () => events.length === 2);
    expect(events.map(({ type }) => type)).toEqual(["ADDED", "DELETED"]);
    expect(events[0]?.object.metadata.name).toBe(events[1]?.object.metadata.name);
    controller.abort();
    await read;
    const tooOld = await fetch(`${gateway.apiServerUrl}${IN_DEFAULT}?watch=1&resourceVersion=1`, { headers });
    expect([tooOld.status, await tooOld.json()]).toMatchObject([410, { reason: "Expired" }]);
    await leave(clients);
  });
});

it("a watch ends with a Status once its user may no longer watch, and others go on", async () => {
  const watch = async (resource: string, token: string) => {
    const leaving = new AbortController();
    const answer = await fetch(`${gateway.apiServerUrl}${PREFIX}/${resource}?watch=1`, {
      headers: { Authorization: `Bearer ${token}-token` },
      signal: leaving.signal,
    });
    return { answer, leave: () => leaving.abort() };
  };
  const ended = await Promise.all(["streamingsessions", "recordings"].map((each) => watch(each, "lister")));
  const other = await watch("recordings", "admin");
  const giveBack = await revoke("lister");
  for (const [index, resource] of ["streamingsessions", "recordings"].entries()) {
    const lines = (await ended[index]?.answer.text())?.trim().split("\n") ?? [];
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      {
        type: "ERROR",
        object: {
          kind: "Status",
          apiVersion: "v1",
          code: 403,
          reason: "Forbidden",
          message: expect.stringMatching(
            new RegExp(
              `^the watch was ended: ${resource}\\.sluice\\.dev is forbidden: User "lister" cannot watch`,
            ),
          ),
          details: { causes: [{ reason: "sluice.dev/WatchEnded", message: "authorization-revoked" }] },
        },
      },
    ]);
  }
  const goesOn = other.answer.text().catch(() => "left");
  other.leave();
  expect(await goesOn).toBe("left");
  await giveBack();
});

describe("a viewer", () => {
  it("sees what the session prints, until it ends, and is audited", async () => {
    const [client] = await execs(1);
    const [name = ""] = namesOf((await ask(IN_DEFAULT)).body);
    const headers = { Authorization: "Bearer viewer-token" };
    const url = `${gateway.apiServerUrl}${IN_DEFAULT}/${name}/output`;
    const view = await fetch(url, { headers });
    expect([view.status, view.headers.get("content-type")]).toEqual([200, "application/x-asciicast"]);
    const metric = async () => (await gateway.readMetrics()).get("sluice_session_viewers");
    expect(await metric()).toBe(1);
    client?.socket.send(Buffer.from("\u0000hello\n"));
    let text = "";
    const reading = (async () => {
      for await (const part of view.body ?? []) text += Buffer.from(part).toString();
    })();
    await eventually("the viewer sees it", () => text.includes("hello"));
    // A later one sees what was kept.
    const late = await fetch(url, { headers });
    client?.socket.terminate();
    await reading;
    const [header, ...events] = text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
    expect(header).toMatchObject({ version: 3, title: "default/web/main by admin" });
    expect((events as string[][]).map(([, code, output]) => `${code} ${output}`)).toContain("o hello\n");
    expect(await late.text()).toContain("hello");
    await eventually("the view is audited", () => {
      const lines = gateway.files.read("audit.log").trim().split("\n");
      const events = lines.map((line) => JSON.parse(line) as Record<string, never>);
      const stages = events.flatMap(({ stage, user, objectRef }) => {
        const { username } = user as unknown as { username: string };
        const { subresource } = (objectRef ?? {}) as { subresource?: string };
        return username === "viewer" && subresource === "output" ? [String(stage)] : [];
      });
      return stages.includes("ResponseStarted") && stages.includes("ResponseComplete");
    });
    await eventually("no viewer is left", async () => (await metric()) === 0);
    await leave([]);
  });

  it("that leaves a silent session makes room for others", async () => {
    const clients = await execs(1);
    const [name = ""] = namesOf((await ask(IN_DEFAULT)).body);
    const url = `${gateway.apiServerUrl}${IN_DEFAULT}/${name}/output`;
    const headers = { Authorization: "Bearer viewer-token" };
    const leaving = new AbortController();
    const viewers = Array.from({ length: 10 }, () => fetch(url, { headers, signal: leaving.signal }));
    expect((await Promise.all(viewers)).map(({ status }) => status)).toEqual(new Array(10).fill(200));
    expect((await fetch(url, { headers })).status).toBe(429);
    leaving.abort();
    const metric = async () => (await gateway.readMetrics()).get("sluice_session_viewers");
    await eventually("no viewer is left", async () => (await metric()) === 0);
    const next = new AbortController();
    expect((await fetch(url, { headers, signal: next.signal })).status).toBe(200);
    next.abort();
    await leave(clients);
  });

  it("without the right any more sees nothing more", async () => {
    const clients = await execs(1);
    const [name = ""] = namesOf((await ask(IN_DEFAULT)).body);
    const url = `${gateway.apiServerUrl}${IN_DEFAULT}/${name}/output`;
    const view = await fetch(url, { headers: { Authorization: "Bearer viewer-token" } });
    const refused = 'sluice_session_reauthorizations_total{result="refused"}';
    const before = (await gateway.readMetrics()).get(refused) ?? 0;
    const giveBack = await revoke("viewer");
    const lines = (await view.text()).trim().split("\n");
    expect(lines.at(-1)).toContain('"m","you may no longer view this session"');
    expect((await gateway.readMetrics()).get(refused)).toBe(before + 1);
    await giveBack();
    await leave(clients);
  });

  it("needs the right to see output, and a session that has some", async () => {
    const clients = await execs(1);
    const [name = ""] = namesOf((await ask(IN_DEFAULT)).body);
    const path = `${IN_DEFAULT}/${name}/output`;
    expect(await ask(path, { token: "lister-token" })).toMatchObject({
      status: 403,
      body: { message: expect.stringContaining('cannot get resource "streamingsessions/output"') },
    });
    expect(await ask(path, { method: "POST" })).toMatchObject({ status: 405 });
    expect(await ask(`${IN_DEFAULT}/x/output`)).toMatchObject({ status: 404 });
    await leave(clients);
  });
});

describe("a delete", () => {
  it("ends the session, says who and why, and is audited", async () => {
    const [client] = await execs(1);
    const [name = ""] = namesOf((await ask(IN_DEFAULT)).body);
    const path = `${IN_DEFAULT}/${name}`;
    const dry = await ask(path, { ...JSON_BODY, body: '{"kind":"DeleteOptions","dryRun":["All"]}' });
    expect([dry.status, (await ask(path)).status]).toEqual([200, 200]);
    const other = { ...JSON_BODY, body: '{"preconditions":{"uid":"another"}}' };
    expect(await ask(path, other)).toMatchObject({ status: 409, body: { reason: "Conflict" } });
    const ended = await ask(`${path}?reason=production+freeze`, { method: "DELETE", token: "ender-token" });
    expect(ended).toMatchObject({
      status: 200,
      body: {
        status: "Success",
        details: { name, group: "sluice.dev", kind: "streamingsessions", uid: name },
      },
    });
    const { status, closeCode } = (await client?.done) ?? {};
    expect(closeCode).toBe(1000);
    expect(JSON.parse(status ?? "")).toMatchObject({
      status: "Failure",
      reason: "Forbidden",
      code: 403,
      message: "the session was ended by ender: production freeze",
      details: {
        name: "web",
        kind: "pods",
        causes: [{ reason: "sluice.dev/SessionEnded", message: "moderator" }],
      },
    });
    expect(await ask(path, { method: "DELETE" })).toMatchObject({
      status: 404,
      body: {
        message: `streamingsessions.sluice.dev "${name}" not found`,
        details: { name, kind: "streamingsessions.sluice.dev" },
      },
    });
    await eventually("the delete is audited", () => {
      const lines = gateway.files.read("audit.log").trim().split("\n");
      const events = lines.map((line) => JSON.parse(line) as Record<string, never>);
      return events.some(({ verb, stage, user, objectRef, annotations }) => {
        const { username } = user as unknown as { username: string };
        const { resource, apiGroup } = (objectRef ?? {}) as { resource?: string; apiGroup?: string };
        const { "sluice.dev/reason": reason } = (annotations ?? {}) as Record<string, string>;
        return (
          `${verb} ${stage} ${username} ${resource}.${apiGroup}: ${reason}` ===
          "delete ResponseComplete ender streamingsessions.sluice.dev: production freeze"
        );
      });
    });
  });

  it.each([
    ["lister-token", "DELETE", `${IN_DEFAULT}/x`, 403, 'cannot delete resource "streamingsessions"'],
    [
      "ender-token",
      "GET",
      IN_DEFAULT,
      403,
      'cannot list resource "streamingsessions" in API group "sluice.dev"',
    ],
    ["ender-token", "GET", `${IN_DEFAULT}/x/output`, 403, 'cannot get resource "streamingsessions/output"'],
    ["nobody", "GET", IN_DEFAULT, 401, "Unauthorized"],
    ["admin-token", "DELETE", IN_DEFAULT, 405, "(delete streamingsessions.sluice.dev)"],
    ["admin-token", "POST", IN_DEFAULT, 405, "(post streamingsessions.sluice.dev)"],
    ["admin-token", "PATCH", `${IN_DEFAULT}/x`, 405, "(patch streamingsessions.sluice.dev x)"],
    ["admin-token", "GET", `${PREFIX}/streamingsessions/x`, 404, "could not find the requested resource"],
    ["admin-token", "GET", `${PREFIX}/others`, 404, "could not find the requested resource"],
    ["admin-token", "GET", `${IN_DEFAULT}/x`, 404, 'streamingsessions.sluice.dev "x" not found'],
    ["admin-token", "GET", `${IN_DEFAULT}?limit=x`, 400, "invalid value for limit"],
    ["admin-token", "GET", `${IN_DEFAULT}?continue=x`, 400, "continue key is not valid"],
    [
      "admin-token",
      "GET",
      `${IN_DEFAULT}?fieldSelector=spec.x%3D1`,
      400,
      "field label not supported: spec.x",
    ],
  ])("as %s, %s %s: %i", async (token, method, path, status, message) => {
    const answer = await ask(path, { token, method });
    expect([answer.status, (answer.body as { message: string }).message]).toEqual([
      status,
      expect.stringContaining(message),
    ]);
  });

  it("answers 406 to a client that takes no JSON, and 415 to a body that is none", async () => {
    const accept = "application/vnd.kubernetes.protobuf";
    expect(await ask(IN_DEFAULT, { accept })).toMatchObject({
      status: 406,
      body: { reason: "NotAcceptable" },
    });
    const body = { method: "DELETE", body: "a: b", headers: { "Content-Type": "application/yaml" } };
    expect(await ask(`${IN_DEFAULT}/x`, body)).toMatchObject({ status: 415 });
  });
});
