import { once } from "node:events";
import { createServer as createTlsServer } from "node:https";
import { createServer, type Server } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterEach, describe, expect, it, vi } from "vitest";
import { encodeResumption, RESUME_HEADER, RESUME_PROTOCOL } from "../../../protocols/resume/index.ts";
import type { AdminSession } from "../../../src/admin/admin-server.ts";
import type { RunningGateway } from "../../../src/app/app.ts";
import { listenAt } from "../../../src/net/listen.ts";
import { ResumableSessions } from "../../../src/sessions/resumable/resumable-sessions.ts";
import { ReplicaName } from "../../../src/sessions/resumable/session-owner.ts";
import { callerLine } from "../../../src/sessions/resumption/resume-session.ts";
import { newReplicaId } from "../../../src/sessions/session-id.ts";
import { listedSession } from "../../support/listed-session.ts";
import {
  ReplicaFiles,
  type ReplicasOptions,
  readJson,
  SESSION_KEY,
  targetAt,
} from "../../support/replicas.ts";
import { OTHER_TOKEN } from "../../support/resumable-gateway.ts";
import { EXEC_PATH, openResumable, refusalOf, resumeOnce } from "../../support/resumption-client.ts";
import { issueCertificate } from "../../support/test-certificates.ts";

vi.setConfig({ testTimeout: 60_000, expect: { poll: { timeout: 20_000 } } });

const NO_ANSWER = "503 ServiceUnavailable the process that owns the session does not answer";
const EXPIRED = "410 Expired the session is not held here, or not any more";

let files: ReplicaFiles;
let running: RunningGateway[] = [];
const servers: Server[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((gateway) => gateway.shutDown()));
  for (const server of servers.splice(0)) server.close();
  await files.stop();
});

async function start(options: ReplicasOptions = {}): Promise<void> {
  files = await ReplicaFiles.create({ users: [`${OTHER_TOKEN},other,uid-2,"dev"`], ...options });
  running = await Promise.all(files.replicas.map((_, index) => files.start(index)));
}

const at = (index: number, token?: string) => targetAt(running[index]?.apiServerUrl ?? "", token);

/** What a list of all replicas' sessions says, asked of one of them. */
async function listed(index: number) {
  const { sessions, partial } = (await readJson(`${running[index]?.adminUrl}/sessions`)) as {
    sessions: AdminSession[];
    partial: { replica: string; problem: string }[];
  };
  return { sessions, partial };
}

/** A port where connections are accepted and nothing is ever said. */
async function silentPort(): Promise<number> {
  const server = createServer({ allowHalfOpen: true });
  servers.push(server);
  return (await listenAt(server, { address: "127.0.0.1", port: 0 })).port;
}

const wireOf = (index: number) =>
  files.replicas[index]?.wire as NonNullable<(typeof files.replicas)[0]>["wire"];

describe("a session of one of two replicas", () => {
  it("goes on through the other, for its own user and a fresh proof alone", async () => {
    await start();
    const { agreement, connection } = await openResumable(at(0), ["cat"]);
    const sentence = "forbidden: the session cannot be resumed:";
    expect(await refusalOf(resumeOnce(at(1, OTHER_TOKEN), agreement, { attempt: 1 }))).toBe(
      `403 Forbidden ${sentence} it is another user's`,
    );
    const resumed = await resumeOnce(at(1), agreement, { attempt: 2 });
    expect(await refusalOf(resumeOnce(at(1), agreement, { attempt: 2 }))).toBe(
      `403 Forbidden ${sentence} the proof is wrong, or was used before`,
    );
    const back = await resumeOnce(at(0), agreement, { attempt: 3 });
    for (const { socket } of [connection, resumed, back]) socket.destroy();
  });

  it("is not looked for where its name is not ours: no peer is dialled", async () => {
    await start();
    const { agreement, connection } = await openResumable(at(0), ["cat"]);
    const before = wireOf(0).bytes + wireOf(1).bytes;
    const forged = { ...agreement, session: Buffer.alloc(16, 7).toString("base64url") };
    expect(await refusalOf(resumeOnce(at(1), forged, { attempt: 1 }))).toBe(EXPIRED);
    expect(wireOf(0).bytes + wireOf(1).bytes).toBe(before);
    connection.socket.destroy();
  });

  it("is in both replicas' lists, once", async () => {
    await start();
    const { connection } = await openResumable(at(0), ["cat"]);
    const [here, there] = [await listed(0), await listed(1)];
    expect(here.partial).toEqual([]);
    expect(there.partial).toEqual([]);
    expect(here.sessions.map(({ user, replica }) => [user, replica])).toEqual([["tester", undefined]]);
    const name = `127.0.0.1:${wireOf(0).port}`;
    expect(there.sessions.map(({ user, replica }) => [user, replica])).toEqual([["tester", name]]);
    connection.socket.destroy();
  });

  it("is found by EndpointSlices, although no endpoint is ready", async () => {
    await start({ bySlices: true });
    const { agreement, connection } = await openResumable(at(0), ["cat"]);
    expect((await listed(1)).sessions).toHaveLength(1);
    (await resumeOnce(at(1), agreement, { attempt: 1 })).socket.destroy();
    connection.socket.destroy();
  });

  it("is ended through the other by its id, and is gone then", async () => {
    await start();
    const { connection } = await openResumable(at(0), ["cat"]);
    const [{ id }] = (await listed(0)).sessions as [AdminSession];
    const request = { id, message: "ended by cleo" };
    expect(await running[1]?.sessions.end(request)).toBe("ended");
    expect((await listed(1)).sessions).toEqual([]);
    expect(await running[1]?.sessions.end(request)).toBe("unknown");
    expect(files.replicas[0]?.log.find((line) => line.includes('"session ended"'))).toMatch(
      /"cause":"moderator","code":500,.*"reason":"ended by cleo"/,
    );
    wireOf(0).targetPort = 1;
    wireOf(0).cutAll();
    await wireOf(0).close();
    expect(await running[1]?.sessions.end(request)).toBe("unknown");
    connection.socket.destroy();
  });

  it("is kept while its owner drains, and goes on through the other", async () => {
    await start({ timeouts: { shutdownGracePeriod: "30s" } });
    const { agreement, connection } = await openResumable(at(0), ["cat"]);
    const drained = running[0]?.shutDown();
    expect(await refusalOf(openResumable(at(0), ["cat"]))).toContain("503 ServiceUnavailable");
    connection.socket.destroy();
    const resumed = await resumeOnce(at(1), agreement, { attempt: 1 });
    expect((await listed(1)).sessions).toHaveLength(1);
    // Close 1000: the client is done, and so is the owner.
    resumed.socket.end(Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8]));
    resumed.socket.resume();
    await drained;
  });

  it("is gone with its owner, and is not waited for", async () => {
    await start();
    const { agreement } = await openResumable(at(0), ["cat"]);
    // It is known to the other by then.
    (await resumeOnce(at(1), agreement, { attempt: 1 })).socket.destroy();
    await running.shift()?.shutDown();
    wireOf(0).targetPort = 1;
    await wireOf(0).close();
    expect(
      await refusalOf(resumeOnce(targetAt(running[0]?.apiServerUrl ?? ""), agreement, { attempt: 2 })),
    ).toBe(EXPIRED);
  });
});

describe("a peer that does not answer as it should", () => {
  it("hangs: 503 within the dial time, and its name in the list", async () => {
    await start({ timeouts: { peerDial: "300ms", peerList: "200ms" } });
    const { agreement, connection } = await openResumable(at(0), ["cat"]);
    wireOf(0).targetPort = await silentPort();
    expect(await refusalOf(resumeOnce(at(1), agreement, { attempt: 1 }))).toContain(NO_ANSWER);
    const { sessions, partial } = await listed(1);
    expect(sessions).toEqual([]);
    const replica = `127.0.0.1:${wireOf(0).port}`;
    const [session] = running[0]?.sessions.list() ?? [];
    const request = { id: session?.id ?? "", message: "ended by cleo" };
    expect(await running[1]?.sessions.end(request)).toBe("unreachable");
    // On a busy machine the other may be as slow.
    expect(partial).toContainEqual({ replica, problem: `no answer from ${replica} within 200 ms` });
    connection.socket.destroy();
  });

  it("is cut off, and comes back: the session goes on then", async () => {
    await start({ timeouts: { peerDial: "300ms" } });
    const { agreement } = await openResumable(at(0), ["cat"]);
    wireOf(0).isRefusing = true;
    wireOf(0).cutAll();
    expect(await refusalOf(resumeOnce(at(1), agreement, { attempt: 1 }))).toContain("503");
    wireOf(0).isRefusing = false;
    const resumed = await resumeOnce(at(1), agreement, { attempt: 2 });
    resumed.socket.destroy();
  });

  it("has a foreign certificate: it is neither asked nor answered", async () => {
    await start({ timeouts: { peerDial: "2s" } });
    const { agreement, connection } = await openResumable(at(0), ["cat"]);
    const foreign = await issueCertificate({ commonName: "sluice-peer" });
    let isAsked = false;
    const server = createTlsServer({ ...foreign }, (_request, response) => {
      isAsked = true;
      response.end("{}");
    });
    servers.push(server);
    const port = wireOf(0).targetPort;
    wireOf(0).targetPort = (await listenAt(server, { address: "127.0.0.1", port: 0 })).port;
    expect(await refusalOf(resumeOnce(at(1), agreement, { attempt: 1 }))).toContain(NO_ANSWER);
    expect((await listed(1)).partial).toHaveLength(1);
    expect(isAsked).toBe(false);
    // Nor does a replica answer it: by another authority, or by ours and another name.
    const named = await issueCertificate({ commonName: "somebody" }, files.authority);
    for (const pair of [foreign, named]) {
      await expect(askAs(pair, port)).rejects.toThrow(/socket hang up|ECONNRESET|unknown ca|alert/i);
    }
    await expect(askAs(undefined, port)).rejects.toThrow();
    connection.socket.destroy();
  });

  it("has another name in its certificate: no request of its handshake's flight is carried out", async () => {
    await start();
    const { agreement, connection } = await openResumable(at(0), ["cat"]);
    const claims = vi.spyOn(ResumableSessions.prototype, "claim");
    const user = { name: "stranger", uid: "", groups: [], extra: {} };
    const { session } = agreement;
    const head = [
      `GET ${EXEC_PATH} HTTP/1.1`,
      "Host: peer",
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      `Sec-WebSocket-Key: ${Buffer.alloc(16).toString("base64")}`,
      `Sec-WebSocket-Protocol: ${RESUME_PROTOCOL}`,
      `${RESUME_HEADER}: ${encodeResumption({ session, attempt: 1, received: 0, proof: "x".repeat(43) })}`,
      callerLine(user).join(": "),
    ];
    for (const commonName of ["sluice-peer", "somebody"]) {
      const pair = await issueCertificate({ commonName }, files.authority);
      await sayAtOnce(pair, wireOf(0).targetPort, `${head.join("\r\n")}\r\n\r\n`);
    }
    // That of the replica's own name alone.
    expect(claims).toHaveBeenCalledTimes(1);
    connection.socket.destroy();
  });

  it("is of a later release: more fields are well, no common protocol is named", async () => {
    await start({ count: 3 });
    const leaf = await issueCertificate({ commonName: "sluice-peer" }, files.authority);
    let protocols = [1, 2];
    const server = createTlsServer({ ...leaf }, (_request, response) => {
      const replica = newReplicaId();
      const session = { ...listedSession(1, "default", replica), user: "later", mood: "fine" };
      // One of another replica, and ones that are none.
      const sessions = [session, listedSession(2), { ...session, plan: null }, { id: session.id }, null, "x"];
      response.end(JSON.stringify({ replica, protocols, sessions, colour: "red" }));
    });
    servers.push(server);
    wireOf(2).targetPort = (await listenAt(server, { address: "127.0.0.1", port: 0 })).port;
    expect((await listed(0)).sessions).toEqual([expect.objectContaining({ user: "later", mood: "fine" })]);
    protocols = [2, 3];
    const { sessions, partial } = await listed(0);
    expect(sessions).toEqual([]);
    expect(partial.map(({ problem }) => problem)).toEqual(["it has protocols 2, 3, this replica 1"]);
  });

  it("answers with more than is read", async () => {
    // Megabytes take a busy machine longer than a list's second.
    await start({ timeouts: { peerList: "20s" } });
    const leaf = await issueCertificate({ commonName: "sluice-peer" }, files.authority);
    const server = createTlsServer({ ...leaf }, (_request, response) => {
      response.end(Buffer.alloc(5 * 1024 * 1024, " "));
    });
    servers.push(server);
    wireOf(0).targetPort = (await listenAt(server, { address: "127.0.0.1", port: 0 })).port;
    const { partial } = await listed(1);
    expect(partial.map(({ problem }) => problem)).toEqual(["the answer has more than 4194304 bytes"]);
  });
});

describe("bounds of replicas", () => {
  it("relay so many sessions at once, and no more", async () => {
    await start({ configuration: { limits: { maxPeerRelays: 1 } } });
    const [one, other] = [await openResumable(at(0), ["cat"]), await openResumable(at(0), ["cat"])];
    const relayed = await resumeOnce(at(1), one.agreement, { attempt: 1 });
    expect(await refusalOf(resumeOnce(at(1), other.agreement, { attempt: 1 }))).toBe(
      "503 ServiceUnavailable too many sessions are relayed to other replicas",
    );
    relayed.socket.destroy();
    await expect
      .poll(() => refusalOf(resumeOnce(at(1), other.agreement, { attempt: Date.now() })))
      .toBe("resumed");
    one.connection.socket.destroy();
  });

  it("ask so many peers, and log that there are more", async () => {
    await start({ count: 3, configuration: { limits: { maxPeers: 1 } } });
    const { connection } = await openResumable(at(2), ["cat"]);
    // Only the first of the list is asked, which is the one that asks.
    expect((await listed(0)).sessions).toEqual([]);
    expect(files.replicas[0]?.log.join()).toContain("there are more replicas than are asked");
    connection.socket.destroy();
  });
});

describe("secrets of replicas", () => {
  it("are read again while they run: a certificate that expired, and the next authority", async () => {
    await start({ timeouts: { peerDial: "5s", peerList: "5s" } });
    const expired = await issueCertificate({ commonName: "sluice-peer" }, files.authority, {
      notBefore: new Date(Date.now() - 7_200_000),
      notAfter: new Date(Date.now() - 3_600_000),
    });
    const rotate = async (cert: string, key: string, authority: string): Promise<void> => {
      for (const { files: replica } of files.replicas) {
        replica.write("peer-ca.crt", authority);
        replica.write("peer.crt", cert);
        replica.write("peer.key", key);
      }
    };
    await rotate(expired.cert, expired.key, files.authority.cert);
    await expect
      .poll(async () => (await listed(1)).partial.map(({ problem }) => problem).join())
      .toMatch(/expired/);
    const nextAuthority = await issueCertificate({ commonName: "next authority" });
    const next = await issueCertificate({ commonName: "sluice-peer" }, nextAuthority);
    await rotate(next.cert, next.key, `${files.authority.cert}\n${nextAuthority.cert}`);
    await expect.poll(async () => (await listed(1)).partial).toEqual([]);
    const { agreement } = await openResumable(at(0), ["cat"]);
    (await resumeOnce(at(1), agreement, { attempt: 1 })).socket.destroy();
  });

  it("are session keys that follow their file; a wrong one is logged, and the old stay", async () => {
    await start();
    const nextKey = "the next key, which is as long as the first";
    const { agreement } = await openResumable(at(0), ["cat"]);
    const [replica] = files.replicas;
    replica?.files.write("session.key", "short\n");
    await expect.poll(() => replica?.log.join()).toContain("key 1 must have at least 32 characters");
    expect(replica?.log.join()).not.toContain("short\\n");
    for (const { files: each } of files.replicas) each.write("session.key", `${nextKey}\n${SESSION_KEY}\n`);
    const name = new ReplicaName(newReplicaId(), { current: [Buffer.from(nextKey)] });
    await expect
      .poll(async () => name.read((await openResumable(at(0), ["cat"])).agreement.session) !== undefined)
      .toBe(true);
    (await resumeOnce(at(1), agreement, { attempt: 1 })).socket.destroy();
  });
});

/** Bytes in the flight of the handshake's end, until the listener has closed the connection. */
async function sayAtOnce(pair: { cert: string; key: string }, port: number, text: string): Promise<void> {
  const socket = connectTls({ ...pair, host: "127.0.0.1", port, rejectUnauthorized: false });
  socket.on("error", () => {}).resume();
  socket.end(text);
  await once(socket, "close");
}

/** A request to a peers listener by a client with that certificate. */
async function askAs(pair: { cert: string; key: string } | undefined, port: number): Promise<string> {
  const { get } = await import("node:https");
  return new Promise((resolve, reject) => {
    const options = { ...pair, host: "127.0.0.1", port, path: "/peer/hello", agent: false };
    get({ ...options, rejectUnauthorized: false }, async (response) => {
      let text = "";
      for await (const part of response) text += part;
      resolve(text);
    }).on("error", reject);
  });
}
