import { once } from "node:events";
import { request } from "node:http";
import { PassThrough } from "node:stream";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { SpdyExecutor } from "../../../packages/client/src/executors.ts";
import { execPath } from "../../../packages/client/src/pod-paths.ts";
import { eventually } from "../../support/eventually.ts";
import { clusterRole, clusterRoleBinding, resourceRule } from "../../support/rbac-objects.ts";
import { targetAt } from "../../support/replicas.ts";
import { untilStill } from "../../support/still.ts";
import { startTestGateway, type TestGateway } from "../../support/test-gateway.ts";
import { V5Client } from "../../support/v5-client.ts";

// The bound under test.
const MAX_VIEWERS_PER_SESSION = 10;

const IN_DEFAULT = "/apis/sluice.dev/v1alpha1/namespaces/default/streamingsessions";
const ATTACH = "get,create|sluice.dev|streamingsessions/attach";

const MANIFESTS = [
  clusterRole("exec", resourceRule("get,create||pods/exec")),
  clusterRole("joiner", resourceRule(ATTACH)),
  clusterRole("half", resourceRule("get|sluice.dev|streamingsessions/attach")),
  ...["ben", "cleo", "dan", "half", "viewer"].map((user) =>
    clusterRoleBinding(`exec-${user}`, "ClusterRole/exec", `User:${user}`),
  ),
  ...["ben", "cleo", "dan", "nopod"].map((user) =>
    clusterRoleBinding(`join-${user}`, "ClusterRole/joiner", `User:${user}`),
  ),
  clusterRoleBinding("half", "ClusterRole/half", "User:half"),
  clusterRole("viewer", resourceRule("get|sluice.dev|streamingsessions/output")),
  clusterRoleBinding("viewer", "ClusterRole/viewer", "User:viewer"),
];
const USERS = ["ben", "cleo", "dan", "half", "nopod", "viewer"];
/** Far more than sockets hold on the way of one connection. */
const MAX_FLOOD = 256 * 1024 * 1024;
const PIECE = "x".repeat(64 * 1024);

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway({
    scheme: "http",
    fakeNodes: [{}],
    manifests: MANIFESTS,
    users: [
      "admin-token,admin,1,system:masters",
      ...USERS.map((user, at) => `${user}-token,${user},${at + 2}`),
    ],
    configuration: {
      authorization: { mode: ["RBAC"] },
      audit: { log: { path: "audit.log" } },
      sessions: { reauthorizeInterval: "1s" },
      policy: {
        rules: [
          {
            name: "no-cat-for-dan",
            match: { users: ["dan"], command: [{ prefix: ["cat"] }] },
            action: "deny",
          },
        ],
      },
    },
  });
});
afterAll(() => gateway?.stop());

async function ask(path: string) {
  const headers = { Authorization: "Bearer admin-token" };
  return await (await fetch(`${gateway.apiServerUrl}${path}`, { headers })).json();
}

interface Listed {
  readonly items: readonly {
    readonly metadata: { readonly name: string };
    readonly status: { readonly joiners?: string[] };
  }[];
}

async function owned(command = "cat", stdin = true): Promise<{ owner: V5Client; name: string }> {
  const query = `${stdin ? "stdin=true&" : ""}stdout=true&${command
    .split(" ")
    .map((word) => `command=${word}`)
    .join("&")}`;
  const headers = { Authorization: "Bearer admin-token" };
  const owner = new V5Client(gateway.authority, query, "exec", headers);
  clients.push(owner);
  await owner.opened;
  const { items } = (await ask(IN_DEFAULT)) as Listed;
  return { owner, name: items[0]?.metadata.name ?? "" };
}

function join(name: string, user = "ben", protocols: string[] = ["v5.channel.k8s.io"]): V5Client {
  const url = `ws://${gateway.authority}${IN_DEFAULT}/${name}/attach`;
  const headers = { Authorization: `Bearer ${user}-token` };
  const client = new V5Client(new WebSocket(url, protocols, { perMessageDeflate: false, headers }));
  clients.push(client);
  return client;
}

/** The HTTP answer to a join that is refused. */
function refusal(name: string, user = "ben", protocols?: string[]): Promise<{ code: number; body: string }> {
  const { socket } = join(name, user, protocols);
  return new Promise((resolve, reject) => {
    socket.on("open", () => reject(new Error("it was not refused")));
    socket.on("error", () => {});
    socket.on("unexpected-response", async (_request, answer) => {
      let body = "";
      for await (const part of answer) body += part;
      resolve({ code: answer.statusCode ?? 0, body });
    });
  });
}

const metric = async (name: string) => (await gateway.readMetrics()).get(name);

/** The audit log's last events, of exchanges that are over. */
function completedEvents() {
  const lines = gateway.files.read("audit.log").trim().split("\n");
  return lines.map((line) => JSON.parse(line)).filter(({ stage }) => stage === "ResponseComplete");
}

// A test that fails must not fail the next ones.
const clients: V5Client[] = [];
afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.terminate();
  await eventually("no session runs", () => gateway.running.sessions.list().length === 0);
  await eventually("nobody views", async () => (await metric("sluice_session_viewers")) === 0);
});

describe("a joiner", () => {
  it("types into another's session, both see it, and it gets the session's Status", async () => {
    const { owner, name } = await owned();
    owner.send(0, "from the owner\n");
    await eventually("the owner sees its own", () => owner.text.includes("from the owner\n"));
    const joiner = join(name);
    await joiner.opened;
    joiner.send(4, '{"Width":1,"Height":1}');
    joiner.send(0, "echo hi\n");
    await eventually("both see it", () => [owner, joiner].every((each) => each.text.includes("echo hi\n")));
    const { items } = (await ask(IN_DEFAULT)) as Listed;
    expect(items[0]?.status.joiners).toEqual(["ben"]);
    expect(await metric("sluice_session_joiners")).toBe(1);
    // The end of a joiner's input is not the end of the session's.
    joiner.closeStdin();
    owner.send(0, "still here\n");
    await eventually("it goes on", () => joiner.text.includes("still here\n"));
    owner.closeStdin();
    const [mine, theirs] = await Promise.all([owner.done, joiner.done]);
    expect([mine, theirs].map(({ status, closeCode }) => [JSON.parse(status).status, closeCode])).toEqual([
      ["Success", 1000],
      ["Success", 1000],
    ]);
    await eventually("the join is audited, with the session that it joined", () =>
      completedEvents().some(
        ({ user, objectRef, annotations }) =>
          user.username === "ben" &&
          objectRef?.subresource === "attach" &&
          annotations["sluice.dev/session"] === name &&
          annotations["sluice.dev/session-user"] === "admin",
      ),
    );
  });

  it("joins a session over SPDY, and speaks v4, too", async () => {
    const stdin = new PassThrough();
    const stdout = new PassThrough();
    let seen = "";
    stdout.on("data", (part) => {
      seen += part;
    });
    const target = targetAt(gateway.apiServerUrl, "admin-token");
    const owner = new SpdyExecutor(target, execPath({ namespace: "default", pod: "web" }, ["cat"])).stream({
      stdin,
      stdout,
    });
    await eventually("it runs", () => gateway.running.sessions.list().length === 1);
    const name = gateway.running.sessions.list()[0]?.id ?? "";
    const joiner = join(name, "ben", ["v4.channel.k8s.io"]);
    await joiner.opened;
    stdin.write("one\n");
    await eventually("the owner's input is seen", () => joiner.text.includes("one\n"));
    joiner.send(0, "two\n");
    await eventually(
      "the joiner's input is seen",
      () => seen.includes("two\n") && joiner.text.includes("two\n"),
    );
    stdin.end();
    expect((await owner).exitCode).toBe(0);
    expect(JSON.parse((await joiner.done).status)).toMatchObject({ status: "Success" });
  });

  it("is one of two, and the session outlives one that is killed", async () => {
    const { owner, name } = await owned();
    const [ben, cleo] = [join(name), join(name, "cleo")];
    await Promise.all([ben.opened, cleo.opened]);
    ben.send(0, "b\n");
    cleo.send(0, "c\n");
    const all = [owner, ben, cleo];
    await eventually("all see both", () =>
      all.every((each) => each.text.includes("b\n") && each.text.includes("c\n")),
    );
    ben.socket.terminate();
    await eventually("one is left", async () => (await metric("sluice_session_joiners")) === 1);
    cleo.send(0, "alone\n");
    await eventually("it goes on", () => owner.text.includes("alone\n"));
    // The owner who leaves ends it for everybody.
    owner.socket.close();
    expect(JSON.parse((await cleo.done).status).status).toBe("Failure");
  });

  it("that floods a command which reads nothing holds up only itself", async () => {
    const { owner, name } = await owned("sleep 1000");
    const joiner = join(name);
    await joiner.opened;
    // Kernels keep some MiB on the way, and more on some machines: what is left in the client counts.
    let sentBytes = 0;
    await untilStill("a connection that is not read any more", () => {
      for (; joiner.socket.bufferedAmount === 0 && sentBytes < MAX_FLOOD; sentBytes += PIECE.length)
        joiner.send(0, PIECE);
      return joiner.socket.bufferedAmount;
    });
    owner.socket.close(1000);
    expect((await owner.done).closeCode).toBe(1000);
    joiner.socket.terminate();
  });

  it("needs both verbs, and the right to open such a session", async () => {
    const { name } = await owned();
    const half = await refusal(name, "half");
    expect([half.code, JSON.parse(half.body).message]).toEqual([
      403,
      `streamingsessions "${name}" is forbidden: `,
    ]);
    const nopod = await refusal(name, "nopod");
    expect([nopod.code, JSON.parse(nopod.body).message]).toEqual([
      403,
      expect.stringContaining('cannot create resource "pods/exec"'),
    ]);
    const dan = await refusal(name, "dan");
    expect([dan.code, JSON.parse(dan.body).message]).toEqual([
      403,
      expect.stringContaining('policy rule "no-cat-for-dan" denies it'),
    ]);
    expect((await refusal("x")).code).toBe(404);
    expect((await refusal(name, "ben", ["v1.unknown"])).code).toBe(403);
    const plain = await fetch(`${gateway.apiServerUrl}${IN_DEFAULT}/${name}/attach`, {
      headers: { Authorization: "Bearer ben-token" },
    });
    expect([plain.status, await plain.text()]).toEqual([400, expect.stringContaining("pgrade")]);
  });

  it("is not who may only view: nothing that a viewer sends is typed", async () => {
    const { owner, name } = await owned();
    expect((await refusal(name, "viewer")).code).toBe(403);
    const headers = { Authorization: "Bearer viewer-token" };
    const output = `${gateway.authority}${IN_DEFAULT}/${name}/output`;
    const upgraded = new WebSocket(`ws://${output}`, ["v5.channel.k8s.io"], { headers });
    upgraded.on("error", () => {});
    const [, answer] = await once(upgraded, "unexpected-response");
    expect(answer.statusCode).toBe(404);
    answer.destroy();
    const view = request(`http://${output}`, { headers: { ...headers, "Content-Length": "6" } });
    view.on("error", () => {});
    view.end("typed\n");
    const [shown] = await once(view, "response");
    expect(shown.statusCode).toBe(200);
    for (const method of ["POST", "PUT", "PATCH"])
      expect((await fetch(`http://${output}`, { method, headers, body: "typed\n" })).status).toBe(403);
    owner.send(0, "last\n");
    await eventually("the owner's own comes back", () => owner.text.includes("last\n"));
    expect(owner.text).toBe("last\n");
    view.destroy();
  });

  it("that comes as its session is ended is refused or told so, and leaves nothing", async () => {
    const ways = new Set<string>();
    for (let round = 0; round < 12; round++) {
      const { owner, name } = await owned();
      const headers = { Authorization: "Bearer admin-token" };
      const joiner = join(name);
      const refused = once(joiner.socket, "unexpected-response").then(([, { statusCode }]) =>
        String(statusCode),
      );
      joiner.socket.on("error", () => {});
      if (round % 4 > 0) await new Promise((resolve) => setTimeout(resolve, (round % 4) * 3));
      const ended = await fetch(`${gateway.apiServerUrl}${IN_DEFAULT}/${name}`, {
        method: "DELETE",
        headers,
      });
      expect([200, 202]).toContain(ended.status);
      const told = joiner.done.then(({ status }) => (status === "" ? "nothing" : JSON.parse(status).message));
      ways.add(await Promise.race([refused, told]));
      expect(JSON.parse((await owner.done).status).message).toBe("the session was ended by admin");
      await eventually("it is over", () => gateway.running.sessions.list().length === 0);
    }
    const known = new Set(["404", "409", "the session was ended by admin"]);
    expect([...ways].filter((way) => !known.has(way))).toEqual([]);
    expect(await metric("sluice_session_joiners")).toBe(0);
  });

  it("is refused by a session without stdin", async () => {
    const { name } = await owned("sleep 1000", false);
    const none = await refusal(name);
    expect([none.code, JSON.parse(none.body).message]).toEqual([
      400,
      expect.stringContaining("has no stdin"),
    ]);
  });

  it("is refused, or ends, once the stdin of its session has ended", async () => {
    const { owner, name } = await owned("sleep 1000");
    const joiner = join(name);
    await joiner.opened;
    owner.closeStdin();
    await eventually("a later one is refused", async () => {
      const { code } = await refusal(name).catch(() => ({ code: 0 }));
      return code === 409;
    });
    joiner.send(0, "too late\n");
    const { status } = await joiner.done;
    expect(JSON.parse(status)).toMatchObject({
      code: 409,
      details: { causes: [{ reason: "sluice.dev/JoinEnded" }] },
    });
  });

  it("ends when its rights are revoked, and the session goes on", async () => {
    const { owner, name } = await owned();
    const [ben, cleo] = [join(name), join(name, "cleo")];
    await Promise.all([ben.opened, cleo.opened]);
    const list = JSON.parse(gateway.files.read("cluster.json")) as {
      items: { metadata: { name: string } }[];
    };
    const items = list.items.filter(({ metadata }) => metadata.name !== "exec-ben");
    gateway.files.write("cluster.json", JSON.stringify({ ...list, items }));
    await gateway.reload();
    const { status } = await ben.done;
    expect(JSON.parse(status)).toMatchObject({
      code: 403,
      message: expect.stringMatching(/^the join was ended: .* cannot create resource "pods\/exec"/),
      details: { causes: [{ reason: "sluice.dev/JoinEnded", message: "authorization-revoked" }] },
    });
    await eventually("the join's end is audited", () =>
      completedEvents().some(
        ({ annotations = {} }) =>
          annotations["sluice.dev/session"] === name &&
          annotations["sluice.dev/end-cause"] === "authorization-revoked" &&
          annotations["sluice.dev/end-code"] === "403",
      ),
    );
    cleo.send(0, "still here\n");
    await eventually("the session goes on", () => owner.text.includes("still here\n"));
    gateway.files.write("cluster.json", JSON.stringify(list));
    await gateway.reload();
  });

  it("counts as a viewer", async () => {
    const { name } = await owned();
    const joiners = Array.from({ length: MAX_VIEWERS_PER_SESSION }, () => join(name));
    await Promise.all(joiners.map(({ opened }) => opened));
    expect((await refusal(name, "cleo")).code).toBe(429);
  });
});
