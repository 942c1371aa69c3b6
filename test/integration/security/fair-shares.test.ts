import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { AccessGateway } from "../../support/access-gateway.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { ask, connectHttp2 } from "../../support/http2-client.ts";
import { issueCertificate, type TestCertificate } from "../../support/test-certificates.ts";

/** An address that a user has in its name. */
const IMITATED = "203.0.113.7";
const HONEST_USERS = Array.from({ length: 50 }, (_, index) => `honest-${index}`);

/** A server that answers when the whole request is there, and counts the requests that wait for more of theirs. */
async function startUpstream(tls?: TestCertificate) {
  const seen = { begun: 0, watches: 0 };
  const answer: RequestListener = (request, response) => {
    seen.begun += 1;
    // As an API server that is slow, or authenticates slowly.
    if (request.headers.authorization?.includes("made-up") || request.url === "/api/v1/held") return;
    if (request.url?.includes("watch=true")) {
      seen.watches += 1;
      response.writeHead(200).flushHeaders();
      return;
    }
    request.resume().once("end", () => response.end("{}"));
  };
  const upstream = tls === undefined ? createServer(answer) : createSecureServer(tls, answer);
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  onTestFinished(() => {
    upstream.close();
    upstream.closeAllConnections();
  });
  return {
    seen,
    url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
  };
}

/** It authenticates by itself and impersonates, or else passes credentials on. */
async function startGateway(limits: object, { passesOn = false } = {}) {
  const tls = await issueCertificate({ commonName: "api" }, undefined, { addresses: ["127.0.0.1"] });
  const { seen, url } = await startUpstream(passesOn ? undefined : tls);
  const gateway = await AccessGateway.start((folder) => {
    const users = ["mallory", ...HONEST_USERS].map((name) => `token-${name},${name},${name}`);
    users.push(`token-imitator,address ${IMITATED},imitator`);
    writeFileSync(path.join(folder, "tokens.csv"), `${users.join("\n")}\n`);
    writeFileSync(path.join(folder, "api.crt"), tls.cert);
    writeFileSync(path.join(folder, "api.key"), tls.key);
    const own = {
      certificateAuthorityFile: "api.crt",
      clientCertificateFile: "api.crt",
      clientKeyFile: "api.key",
    };
    return {
      ...(!passesOn && {
        authentication: { tokenAuthFile: "tokens.csv" },
        authorization: { mode: ["AlwaysAllow"] },
      }),
      upstreamAPIServer: { url, ...(!passesOn && own) },
      edge: { trustedProxies: ["127.0.0.1"] },
      limits,
      timeouts: { shutdownGracePeriod: "0s" },
    };
  });
  onTestFinished(() => gateway.stop());
  const open = async (): Promise<ClientHttp2Session> => {
    const session = await connectHttp2(`https://${gateway.authority}`, { ALPNProtocols: ["h2"] });
    onTestFinished(() => session.destroy());
    return session;
  };
  return { seen, open };
}

const bearer = (name: string) => ({ authorization: `Bearer token-${name}` });

/** Requests that promise a body which does not come. */
function stall(
  session: ClientHttp2Session,
  count: number,
  headers: Record<string, string>,
): Promise<number>[] {
  return Array.from({ length: count }, async () => {
    const stream = session.request({
      ":path": "/api/v1/namespaces/a/configmaps",
      ":method": "POST",
      ...headers,
    });
    stream.on("error", () => {});
    const [answer] = (await once(stream, "response")) as [Record<string, unknown>];
    return Number(answer[":status"]);
  });
}

describe("beside one user that holds all that it can", () => {
  it("every request of others is served, and health checks", async () => {
    const { seen, open } = await startGateway({
      maxConcurrentRequests: 100,
      maxConcurrentRequestsPerUser: 25,
    });
    const refused: number[] = [];
    for (let connection = 0; connection < 5; connection++) {
      for (const answer of stall(await open(), 60, bearer("mallory"))) {
        void answer.then((status) => refused.push(status)).catch(() => {});
      }
    }
    await expect.poll(() => [refused.length, seen.begun]).toEqual([275, 25]);
    expect(new Set(refused)).toEqual(new Set([429]));
    const honest = await open();
    const answers = await Promise.all(
      HONEST_USERS.map((name) => ask(honest, "/api/v1/namespaces/a/pods", bearer(name))),
    );
    expect(answers.map(({ status }) => status)).toEqual(HONEST_USERS.map(() => 200));
    expect((await ask(honest, "/livez", bearer("honest-0"))).status).toBe(200);
  });

  it("a user that has nothing waits for its turn instead of being refused", async () => {
    const { seen, open } = await startGateway({ maxConcurrentRequests: 4, maxConcurrentRequestsPerUser: 4 });
    const hostile = await open();
    const held = [1, 2, 3, 4].map(() => hostile.request({ ":path": "/api/v1/held", ...bearer("mallory") }));
    for (const stream of held) stream.on("error", () => {}).resume();
    await expect.poll(() => seen.begun).toBe(4);
    expect((await ask(hostile, "/api/v1/nodes", bearer("mallory"))).status).toBe(429);
    const waiting = ask(await open(), "/api/v1/pods", bearer("honest-0"));
    expect((await ask(hostile, "/readyz", bearer("mallory"))).status).toBe(200);
    held[0]?.close();
    expect((await waiting).status).toBe(200);
  });

  it("watches of others begin", async () => {
    const { seen, open } = await startGateway({
      maxLongRunningRequests: 40,
      maxLongRunningRequestsPerUser: 10,
    });
    const hostile = await open();
    const refused: number[] = [];
    for (let index = 0; index < 60; index++) {
      const stream = hostile.request({ ":path": "/api/v1/pods?watch=true", ...bearer("mallory") });
      stream.on("error", () => {});
      stream.once("response", (answer) => {
        if (answer[":status"] !== 200) refused.push(Number(answer[":status"]));
      });
    }
    await expect.poll(() => [seen.watches, refused.length]).toEqual([10, 50]);
    expect(new Set(refused)).toEqual(new Set([429]));
    const honest = await open();
    const watch = honest.request({ ":path": "/api/v1/pods?watch=true", ...bearer("honest-0") });
    const [answer] = (await once(watch, "response")) as [Record<string, unknown>];
    expect(answer[":status"]).toBe(200);
    // Its place is free when it has left.
    hostile.destroy();
    const again = await open();
    const next = again.request({ ":path": "/api/v1/pods?watch=true", ...bearer("mallory") });
    const [first] = (await once(next, "response")) as [Record<string, unknown>];
    expect(first[":status"]).toBe(200);
  });

  it("watches of an address begin beside a user who is named like it", async () => {
    const { seen, open } = await startGateway({
      maxLongRunningRequests: 40,
      maxLongRunningRequestsPerUser: 10,
    });
    const hostile = await open();
    for (let index = 0; index < 10; index++) {
      const stream = hostile.request({ ":path": "/api/v1/pods?watch=true", ...bearer("imitator") });
      stream.on("error", () => {}).resume();
    }
    await expect.poll(() => seen.watches).toBe(10);
    const watch = (await open()).request({
      ":path": "/api/v1/pods?watch=true",
      "x-forwarded-for": IMITATED,
      ...bearer("honest-0"),
    });
    const [answer] = (await once(watch, "response")) as [Record<string, unknown>];
    expect(answer[":status"]).toBe(200);
  });
});

describe("beside four users that could hold every seat between them", () => {
  const LIMITS = { maxConcurrentRequests: 100, maxConcurrentRequestsPerUser: 25 };
  const COLLUDING = ["mallory", "honest-47", "honest-48", "honest-49"];

  it.each([
    ["do not begin", ""],
    ["begin with a byte", "{"],
  ])("whose requests' bodies %s, reads, writes and health checks of others are answered", async (_, beginning) => {
    const { open } = await startGateway(LIMITS);
    const streams: ClientHttp2Stream[] = [];
    const statuses: unknown[] = [];
    for (const name of COLLUDING) {
      const session = await open();
      for (let index = 0; index < 60; index++) {
        const stream = session.request(
          { ":path": "/api/v1/namespaces/a/configmaps", ":method": "POST", ...bearer(name) },
          { endStream: false },
        );
        streams.push(stream.on("error", () => {}).resume());
        stream.once("response", (answer) => statuses.push(answer[":status"]));
        if (beginning !== "") stream.write(beginning);
      }
    }
    const honest = await open();
    const others = HONEST_USERS.slice(0, 40).map((name, index) => ({
      ...bearer(name),
      "x-forwarded-for": `198.51.100.${index + 1}`,
    }));
    const answered = await Promise.all([
      ...others.map((other) => ask(honest, "/api/v1/namespaces/a/pods", other)),
      ...others.map((other) =>
        ask(honest, "/api/v1/namespaces/a/configmaps", { ":method": "POST", ...other }, "{}"),
      ),
      ask(honest, "/livez", bearer("honest-0")),
    ]);
    expect(new Set(answered.map(({ status }) => status))).toEqual(new Set([200]));
    // The first of each still wait, and are served when their bodies come.
    for (const stream of streams) if (stream.writable) stream.end("}");
    await expect.poll(() => statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(4);
  });
});

describe("beside four users that hold every watch between them", () => {
  const LIMITS = { maxLongRunningRequests: 40, maxLongRunningRequestsPerUser: 10 };
  const COLLUDING = ["mallory", "honest-47", "honest-48", "honest-49"];

  it("each other user has its watches, for which the newest of the largest user's end", async () => {
    const { seen, open } = await startGateway(LIMITS);
    const ended: string[] = [];
    for (const name of COLLUDING) {
      const session = await open();
      for (let index = 0; index < 10; index++) {
        const stream = session.request({ ":path": "/api/v1/pods?watch=true", ...bearer(name) });
        stream.on("error", () => {}).resume();
        stream.once("close", () => ended.push(`${name} ${stream.rstCode === 0 ? "whole" : "reset"}`));
      }
    }
    await expect.poll(() => seen.watches).toBe(40);
    const honest = await open();
    const watch = async (name: string): Promise<unknown> => {
      const stream = honest.request({ ":path": "/api/v1/pods?watch=true", ...bearer(name) });
      stream.on("error", () => {});
      const [answer] = (await once(stream, "response")) as [Record<string, unknown>];
      return answer[":status"];
    };
    const statuses: unknown[] = [];
    // Nine users share 40 watches: four each.
    for (const name of HONEST_USERS.slice(0, 5)) {
      for (let own = 0; own < 4; own++) statuses.push(await watch(name));
    }
    expect(statuses).toEqual(Array.from({ length: 20 }, () => 200));
    await expect.poll(() => ended.length).toBe(20);
    expect(new Set(ended)).toEqual(new Set(COLLUDING.map((name) => `${name} reset`)));
    const again = (await open()).request({ ":path": "/api/v1/pods?watch=true", ...bearer("mallory") });
    const [answer] = (await once(again, "response")) as [Record<string, unknown>];
    expect(answer[":status"]).toBe(429);
  });
});

describe("where the API server authenticates", () => {
  it("watches with made-up tokens end none of those with accepted ones, which are counted by token", async () => {
    const { open, seen } = await startGateway(
      { maxLongRunningRequests: 10, maxLongRunningRequestsPerUser: 9 },
      { passesOn: true },
    );
    const session = await open();
    const token = (name: string) => ({ authorization: `Bearer ${name}` });
    const watch = async (name: string): Promise<number> => {
      const stream = session.request({ ":path": "/api/v1/pods?watch=true", ...token(name) });
      stream.on("error", () => {});
      const [answer] = (await once(stream, "response")) as [Record<string, unknown>];
      return Number(answer[":status"]);
    };
    for (const name of ["token-mallory", "token-honest-1"]) {
      expect((await ask(session, "/api/v1/pods", token(name))).status).toBe(200);
    }
    const statuses: number[] = [];
    for (let count = 0; count < 9; count++) statuses.push(await watch("token-mallory"));
    for (let count = 0; count < 2; count++) statuses.push(await watch("token-honest-1"));
    expect(statuses).toEqual(Array.from({ length: 11 }, () => 200));
    expect([await watch("token-new"), seen.watches]).toEqual([429, 11]);
  });

  it("made-up tokens share their address's seats, and a token that it has accepted keeps its own", async () => {
    const { open, seen } = await startGateway(
      { maxConcurrentRequests: 40, maxConcurrentRequestsPerUser: 10 },
      { passesOn: true },
    );
    const session = await open();
    const from = (address: string, token: string) => ({
      authorization: `Bearer ${token}`,
      "x-forwarded-for": address,
    });
    const known = from("203.0.113.7", "token-honest-1");
    expect((await ask(session, "/api/v1/pods", known)).status).toBe(200);
    const refused: number[] = [];
    for (let index = 0; index < 60; index++) {
      const stream = session.request({ ":path": "/api/v1/pods", ...from("203.0.113.7", `made-up-${index}`) });
      stream.on("error", () => {});
      stream.once("response", (answer) => refused.push(Number(answer[":status"])));
    }
    await expect.poll(() => [refused.length, seen.begun]).toEqual([10, 11]);
    expect(new Set(refused)).toEqual(new Set([429]));
    expect((await ask(session, "/api/v1/pods", known)).status).toBe(200);
    expect((await ask(session, "/api/v1/pods", from("198.51.100.1", "token-honest-2"))).status).toBe(200);
    expect((await ask(session, "/livez", from("203.0.113.7", "unknown"))).status).toBe(200);
  });
});

describe("beside one address that holds all that it can at the front door", () => {
  it("every request of others is served", async () => {
    const { seen, url } = await startUpstream();
    const door = await FrontDoor.start(
      [
        ...serviceObjects("app", [{ port: Number(new URL(url).port) }]),
        ingressObject("all", { defaultBackend: backend("app") }),
      ],
      {},
      {
        limits: { maxConcurrentIngressRequests: 40, maxConcurrentIngressRequestsPerAddress: 10 },
        edge: { trustedProxies: ["127.0.0.1"] },
        timeouts: { shutdownGracePeriod: "0s" },
      },
    );
    onTestFinished(() => door.stop());
    const session = await connectHttp2(`http://127.0.0.1:${door.httpPort}`);
    onTestFinished(() => session.destroy());
    const refused: number[] = [];
    for (const answer of stall(session, 60, { ":authority": "a", "x-forwarded-for": "203.0.113.7" })) {
      void answer.then((status) => refused.push(status)).catch(() => {});
    }
    await expect.poll(() => [refused.length, seen.begun]).toEqual([50, 10]);
    expect(new Set(refused)).toEqual(new Set([503]));
    const answers = await Promise.all(
      HONEST_USERS.map((_, index) =>
        ask(session, "/", { ":authority": "a", "x-forwarded-for": `198.51.100.${index + 1}` }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(HONEST_USERS.map(() => 200));
  });
});
