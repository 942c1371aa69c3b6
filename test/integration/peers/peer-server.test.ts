import { once } from "node:events";
import { Agent, createServer, request } from "node:https";
import { setTimeout as delay } from "node:timers/promises";
import type { TLSSocket } from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { UpstreamTls } from "../../../packages/client/src/net/tls.ts";
import type { AdminSession, SessionLists } from "../../../src/admin/admin-server.ts";
import { listenAt } from "../../../src/net/listen.ts";
import { PeerClient } from "../../../src/peers/peer-client.ts";
import {
  HELLO_PATH,
  helloOf,
  PEER_PAGE_SESSIONS,
  SESSIONS_PATH,
  sessionPathOf,
} from "../../../src/peers/peer-protocol.ts";
import {
  createPeerServer,
  type PeerServerParts,
  replacePeerTls,
  SessionPages,
} from "../../../src/peers/peer-server.ts";
import { type EndRequest, MAX_END_REQUEST_BYTES } from "../../../src/sessions/session-actions.ts";
import { newSessionId } from "../../../src/sessions/session-id.ts";
import { MAX_JOIN_REQUEST_BYTES } from "../../../src/sessions/session-joins.ts";
import { OUTPUT_WAIT_MS, type OutputPage, type OutputRead } from "../../../src/sessions/session-outputs.ts";
import { defaultLimits, defaultTimeouts } from "../../support/default-configuration.ts";
import { fixedBound } from "../../support/fixed-bound.ts";
import { issueCertificate } from "../../support/test-certificates.ts";

// The bounds under test.
const MAX_PEER_PAGES = 100;
const MAX_PEER_SESSIONS = MAX_PEER_PAGES * PEER_PAGE_SESSIONS;
const MAX_PEER_LIST_CHARACTERS = fixedBound("src/api/list-cost.ts", "MAX_PEER_LIST_CHARACTERS");
const KEPT_LIST_MS = 5_000;
const MAX_RECORDINGS_QUESTION_BYTES = 64 * 1024;
const MAX_KEPT_LISTS = 8;

const NAME = "sluice-peer";

it("connections of replicas whose authority was taken away end, and those of others go on", async () => {
  const authorities = await Promise.all(["old", "new"].map((commonName) => issueCertificate({ commonName })));
  const [older, newer] = await Promise.all(
    authorities.map((authority) => issueCertificate({ commonName: NAME }, authority, { names: [NAME] })),
  );
  if (older === undefined || newer === undefined) throw new Error("no certificates");
  const bundle = authorities.map(({ cert }) => cert).join("\n");
  const tls = { cert: newer.cert, key: newer.key, clientAuthorities: [bundle] };
  const server = createPeerServer({
    tls,
    name: NAME,
    replica: "one",
    sessions: {
      listReplica: async () => ({ sessions: [], partial: [] }),
      endInReplica: async () => "unknown",
      factsInReplica: async () => undefined,
      outputInReplica: async () => "unknown",
      typeInReplica: async () => "unknown",
    },
    answerRecordings: async () => ({}),
    gateway: { limits: defaultLimits, timeouts: defaultTimeouts, logger: { warn: () => {} } } as never,
  });
  const { port } = await listenAt(server, { address: "127.0.0.1", port: 0 });
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  /** The status of a request, and the connection that it is kept on. */
  const connectAs = async ({ cert, key }: { cert: string; key: string }) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: bundle, cert, key, servername: NAME });
    onTestFinished(() => agent.destroy());
    const sent = request({ host: "127.0.0.1", port, path: HELLO_PATH, agent }).end();
    const [answer] = await once(sent, "response");
    answer.resume();
    await once(answer, "end");
    expect(answer.statusCode).toBe(200);
    return sent.socket as TLSSocket;
  };
  const [ofOlder, ofNewer] = [await connectAs(older), await connectAs(newer)];
  replacePeerTls(server, tls);
  expect(await connectAs(older)).toBeDefined();
  const ended = once(ofOlder, "close");
  replacePeerTls(server, { ...tls, clientAuthorities: [authorities[1]?.cert ?? ""] });
  await ended;
  expect(ofNewer.destroyed).toBe(false);
  await expect(connectAs(older)).rejects.toThrow();
  expect(await connectAs(newer)).toBeDefined();
});

/** What a viewer asked for, as output. */
const pageOf = ({ viewer, after }: OutputRead): OutputPage => ({
  from: after,
  next: after + 1,
  events: [[5, "o", viewer]],
  isOver: false,
});
const OVER = { metadata: {}, status: "Success" };
const FACTS = { command: ["sh", "-c", "true"], groups: ["sre"] };
const sessionOf = (number: number): AdminSession => ({
  id: String(number).padStart(8, "0"),
  subresource: "exec",
  namespace: "default",
  pod: `pod-${number}-${"x".repeat(300)}`,
  node: "node",
  user: "tester",
  plan: { kind: "translate", reason: "node-speaks-spdy-only" },
  startedAt: new Date(0),
  downstreamBytes: 0,
  upstreamBytes: 0,
});

/** A replica with these sessions, and a client of it. */
async function replicaWith(
  listSessions: () => readonly AdminSession[],
  endInReplica: PeerServerParts["sessions"]["endInReplica"] = async () => "unknown",
  partial: SessionLists["partial"] = [],
) {
  const authority = await issueCertificate({ commonName: "authority" });
  const { cert, key } = await issueCertificate({ commonName: NAME }, authority, { names: [NAME] });
  const server = createPeerServer({
    tls: { cert, key, clientAuthorities: [authority.cert] },
    name: NAME,
    replica: "0a1b2c3d",
    sessions: {
      listReplica: async () => ({ sessions: listSessions(), partial }),
      endInReplica,
      factsInReplica: async () => FACTS,
      outputInReplica: async (read) => pageOf(read),
      typeInReplica: async ({ data }) => (data === "" ? { over: OVER } : "taken"),
    },
    answerRecordings: async (question) => ({ question }),
    gateway: {
      limits: defaultLimits,
      timeouts: defaultTimeouts,
      logger: { warn: () => {}, error: () => {} },
    } as never,
  });
  const { port } = await listenAt(server, { address: "127.0.0.1", port: 0 });
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const tls = new UpstreamTls({ ca: authority.cert, certificate: cert, key, serverName: NAME });
  const client = new PeerClient(tls, { peerDialMs: 20_000, peerListMs: 20_000 });
  return {
    client,
    address: { host: "127.0.0.1", port, name: `127.0.0.1:${port}` },
    ca: authority.cert,
    cert,
    key,
  };
}

it("more sessions than one answer may have bytes for are listed page by page, each once", async () => {
  const all = Array.from({ length: 12 * PEER_PAGE_SESSIONS + 1 }, (_, number) => sessionOf(2 * number));
  const shuffled = all.toSorted((one, other) =>
    one.id.split("").reverse() < other.id.split("").reverse() ? -1 : 1,
  );
  let collected = 0;
  const { client, address } = await replicaWith(() => {
    collected += 1;
    return shuffled;
  });
  expect(JSON.stringify(all).length).toBeGreaterThan(4 * 1024 * 1024);
  const { sessions, replica } = await client.sessions(address);
  expect(replica).toBe("0a1b2c3d");
  expect(sessions.map(({ id }) => id)).toEqual(all.map(({ id }) => id));
  expect(collected).toBe(1);
});

it("a session's output is asked for by its id, for a viewer, behind what it has", async () => {
  const { client, address } = await replicaWith(() => []);
  const read = { id: newSessionId("0a1b2c3d"), viewer: "v", after: 7 };
  expect(await client.sessionOutput(address, read)).toEqual(pageOf(read));
});

it("a joiner types into a session by its id, and is told how it ended", async () => {
  const { client, address } = await replicaWith(() => []);
  const request = { id: newSessionId("0a1b2c3d"), joiner: "j", user: "ben", data: "bHM=" };
  expect(await client.typeInSession(address, request)).toBe("taken");
  expect(await client.typeInSession(address, { ...request, data: "" })).toEqual({ over: OVER });
  const tooMuch = { ...request, data: "x".repeat(MAX_JOIN_REQUEST_BYTES) };
  await expect(client.typeInSession(address, tooMuch)).rejects.toThrow("it answered with status 400");
});

it("a question about recordings that is too long, or is none, is refused", async () => {
  const { client, address } = await replicaWith(() => []);
  const answer = { question: { want: "find" } };
  expect(await client.recordings(address, answer.question)).toEqual({ replica: "0a1b2c3d", answer });
  const tooMuch = { labels: "x".repeat(MAX_RECORDINGS_QUESTION_BYTES) };
  await expect(client.recordings(address, tooMuch)).rejects.toThrow("it answered with status 400");
});

it("a session's facts are asked for by its id, and of an older release there are none", async () => {
  const { client, address } = await replicaWith(() => []);
  expect(await client.sessionFacts(address, newSessionId("0a1b2c3d"))).toEqual(FACTS);
  await expect(client.sessionFacts(address, "x")).rejects.toThrow("it answered with status 404");
});

it("each page names the workers whose sessions are missing", async () => {
  const partial = [{ worker: 3, problem: "the worker does not answer" }];
  const all = Array.from({ length: 2 * PEER_PAGE_SESSIONS }, (_, number) => sessionOf(number));
  const { client, address } = await replicaWith(() => all, undefined, partial);
  expect(await client.sessions(address)).toMatchObject({ sessions: { length: all.length }, partial });
});

it("a list that was not kept is collected again, and its pages go on behind the same session", async () => {
  let isFirst = true;
  let collected = 0;
  const all = Array.from({ length: 4 * PEER_PAGE_SESSIONS + 1 }, (_, number) => sessionOf(2 * number));
  let nowMs = 0;
  const lists = new SessionPages(
    async () => {
      collected += 1;
      // Behind the first page one session ends, and one begins on a page that was sent already.
      const now = isFirst ? all : [...all.filter(({ id }) => id !== all[1]?.id), sessionOf(1)];
      isFirst = false;
      return { sessions: now, partial: [] };
    },
    () => nowMs,
  );
  onTestFinished(() => lists.clear());
  const listed: string[] = [];
  for (let after: string | undefined = ""; after !== undefined; ) {
    const page: Awaited<ReturnType<SessionPages["pageBehind"]>> = await lists.pageBehind(after);
    listed.push(...page.sessions.map(({ id }) => id));
    after = page.next;
    nowMs += KEPT_LIST_MS;
  }
  expect(listed).toEqual(all.map(({ id }) => id));
  expect(collected).toBe(5);
});

it("few lists are kept at a time, and none for long", async () => {
  let collected = 0;
  const lists = new SessionPages(async () => {
    collected += 1;
    const sessions = Array.from({ length: PEER_PAGE_SESSIONS + 2 }, (_, number) =>
      sessionOf(collected * 10_000 + number),
    );
    return { sessions, partial: [] };
  });
  onTestFinished(() => lists.clear());
  const nexts: string[] = [];
  for (let list = 0; list <= MAX_KEPT_LISTS; list += 1) nexts.push((await lists.pageBehind("")).next ?? "");
  expect(lists.kept).toBe(MAX_KEPT_LISTS);
  expect((await lists.pageBehind(nexts.at(-1) ?? "")).sessions).toHaveLength(2);
  expect(collected).toBe(MAX_KEPT_LISTS + 1);
  await lists.pageBehind(nexts[0] ?? "");
  expect(collected).toBe(MAX_KEPT_LISTS + 2);
});

it("an older release, which asks for no page, has all sessions", async () => {
  const { address, ca, cert, key } = await replicaWith(() =>
    Array.from({ length: PEER_PAGE_SESSIONS + 1 }, (_, number) => ({ ...sessionOf(number), pod: "web" })),
  );
  const { port } = address;
  const sent = request({
    host: "127.0.0.1",
    port,
    path: SESSIONS_PATH,
    ca,
    cert,
    key,
    servername: NAME,
  }).end();
  const [answer] = await once(sent, "response");
  let body = "";
  for await (const part of answer) body += part;
  expect(JSON.parse(body).sessions).toHaveLength(PEER_PAGE_SESSIONS + 1);
});

/** A replica with the right certificate that answers each request with this, and a client of it. */
async function liar(answer: () => object | Promise<object>, peerListMs = 20_000) {
  const { cert, key } = await issueCertificate({ commonName: NAME }, undefined, { names: [NAME] });
  const server = createServer({ cert, key }, async (_, response) =>
    response.end(JSON.stringify({ ...helloOf("0a1b2c3d"), ...(await answer()) })),
  );
  const { port } = await listenAt(server, { address: "127.0.0.1", port: 0 });
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const tls = new UpstreamTls({ ca: cert, serverName: NAME });
  const client = new PeerClient(tls, { peerDialMs: 20_000, peerListMs });
  return { client, address: { host: "127.0.0.1", port, name: "liar" } };
}

it("pages that each come in time, and never end, are given up when ten pages' time is over", async () => {
  let pages = 0;
  const answer = async () => {
    pages += 1;
    await delay(60);
    return { sessions: [], next: String(pages).padStart(3, "0") };
  };
  const { client, address } = await liar(answer, 200);
  const startMs = performance.now();
  await expect(client.sessions(address)).rejects.toThrow(
    /its list takes longer than 10 times timeouts.peerList|within 200 ms/,
  );
  expect(performance.now() - startMs).toBeLessThan(10 * 200 + 2_000);
});

it("protocols that are none are told of in few words", async () => {
  const { client, address } = await liar(() => ({ protocols: ["x".repeat(10_000), [[[]]], null, 7] }));
  await expect(client.hello(address)).rejects.toThrow(/^it has protocols \?, \?, \?, 7, this replica 1$/);
});

it.each([
  [
    "hold more sessions than a page may",
    15 * PEER_PAGE_SESSIONS,
    7,
    `more than ${MAX_PEER_SESSIONS} sessions`,
  ],
  ["do not end", 1, MAX_PEER_PAGES, `more than ${MAX_PEER_PAGES} pages`],
])("pages that %s are not collected without end", async (_what, length, asked, message) => {
  let pages = 0;
  const { client, address } = await liar(() => {
    pages += 1;
    const sessions = Array.from({ length }, () => ({ ...sessionOf(1), pod: "" }));
    return { sessions, next: String(pages).padStart(3, "0") };
  });
  await expect(client.sessions(address)).rejects.toThrow(message);
  expect(pages).toBe(asked);
});

it("pages of long names are given up before they fill the memory", async () => {
  let bytes = 0;
  const { client, address } = await liar(() => {
    const pod = "x".repeat(4_000_000);
    const next = String(bytes).padStart(12, "0");
    bytes += pod.length;
    return { sessions: [{ ...sessionOf(1), pod }], next };
  });
  await expect(client.sessions(address)).rejects.toThrow("its list takes too much memory");
  expect(bytes).toBeLessThan(MAX_PEER_LIST_CHARACTERS + 4_000_000);
});

it.each([
  ["where the view is", 7, 7],
  ["further on", 7, 9],
  ["before the view begins", -1, -1],
])("pages without output that come at once are not asked for without a pause: %s", async (_, after, next) => {
  const { client, address } = await liar(() => ({ output: { from: next, next, events: [], isOver: false } }));
  const startMs = performance.now();
  const read = { id: newSessionId("0a1b2c3d"), viewer: "v", after };
  expect(await client.sessionOutput(address, read)).toMatchObject({ next, events: [] });
  expect(performance.now() - startMs).toBeGreaterThan(OUTPUT_WAIT_MS - 5);
});

describe("a request to end a session", () => {
  const ID = newSessionId("0a1b2c3d");
  const asked: EndRequest[] = [];
  const start = () =>
    replicaWith(
      () => [],
      async (request) => {
        asked.push(request);
        return "ending";
      },
    );

  it("is handed to the session's process, and has its answer", async () => {
    const { client, address } = await start();
    const request = { id: ID, message: "ended by cleo", status: { status: "Failure", code: 403 } };
    expect(await client.endSession(address, request)).toBe("ending");
    expect(asked.splice(0)).toEqual([request]);
  });

  it("that is none is refused, and one that is too large", async () => {
    const { address, ca, cert, key } = await start();
    const post = async (path: string, body: string, method = "POST"): Promise<number | undefined> => {
      const { port } = address;
      const sent = request({ host: "127.0.0.1", port, path, method, ca, cert, key, servername: NAME });
      sent.end(body);
      const [answer] = await once(sent, "response");
      answer.resume();
      return answer.statusCode;
    };
    expect(await post(sessionPathOf(ID, "end"), "{}")).toBe(400);
    const tooMuch = JSON.stringify({ message: "x".repeat(MAX_END_REQUEST_BYTES) });
    expect(await post(sessionPathOf(ID, "end"), tooMuch)).toBe(400);
    expect(await post(sessionPathOf("../hello", "end"), '{"message":"m"}')).toBe(404);
    expect(await post(sessionPathOf(ID, "end"), "", "GET")).toBe(404);
    expect(asked).toEqual([]);
  });
});
