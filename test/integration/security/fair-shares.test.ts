import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { ClientHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { AccessGateway } from "../../support/access-gateway.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { ask, connectHttp2 } from "../../support/http2-client.ts";

const HONEST_USERS = Array.from({ length: 50 }, (_, index) => `honest-${index}`);

/** A server that answers when the whole request is there, and counts the requests that wait for more of theirs. */
async function startUpstream() {
  const seen = { begun: 0, watches: 0 };
  const upstream = createServer((request, response) => {
    seen.begun += 1;
    if (request.url?.includes("watch=true")) {
      seen.watches += 1;
      response.writeHead(200).flushHeaders();
      return;
    }
    request.resume().once("end", () => response.end("{}"));
  }).listen(0, "127.0.0.1");
  await once(upstream, "listening");
  onTestFinished(() => {
    upstream.close();
    upstream.closeAllConnections();
  });
  return { seen, url: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}` };
}

async function startGateway(limits: object) {
  const { seen, url } = await startUpstream();
  const gateway = await AccessGateway.start((folder) => {
    const users = ["mallory", ...HONEST_USERS].map((name) => `token-${name},${name},${name}`);
    writeFileSync(path.join(folder, "tokens.csv"), `${users.join("\n")}\n`);
    return {
      authentication: { tokenAuthFile: "tokens.csv" },
      authorization: { mode: ["AlwaysAllow"] },
      upstreamAPIServer: { url },
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
    const streams = [1, 2, 3, 4].map(() =>
      hostile.request({ ":path": "/api/v1/nodes", ":method": "POST", ...bearer("mallory") }),
    );
    for (const stream of streams) stream.on("error", () => {}).resume();
    await expect.poll(() => seen.begun).toBe(4);
    expect((await ask(hostile, "/api/v1/nodes", bearer("mallory"))).status).toBe(429);
    const waiting = ask(await open(), "/api/v1/pods", bearer("honest-0"));
    expect((await ask(hostile, "/readyz", bearer("mallory"))).status).toBe(200);
    streams[0]?.end("{}");
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
