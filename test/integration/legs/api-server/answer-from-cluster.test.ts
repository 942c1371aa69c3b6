import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { parseTokenFile, StaticTokens } from "../../../../src/access/authn/static-tokens.ts";
import type { KubernetesObject } from "../../../../src/api/objects.ts";
import { ClusterStore } from "../../../../src/cluster/cluster-store.ts";
import { answerFromCluster } from "../../../../src/legs/api-server/answer-from-cluster.ts";
import { createApiServer } from "../../../../src/legs/api-server/api-server.ts";
import { type GatewayHarness, startGatewayHarness } from "../../../support/gateway-harness.ts";
import { closeServer, listen, openClient, readToEnd } from "../../../support/http/loopback.ts";

const TOKEN = "secret-token";
const WATCH = "/api/v1/pods?watch=true&resourceVersion=0";

let harness: GatewayHarness;
let store: CountingStore;
let closeGateway: () => Promise<void> = async () => {};

afterEach(() => closeGateway());

/** Knows how many watches listen. */
class CountingStore extends ClusterStore {
  subscriptions = 0;

  override subscribe(...[listener]: Parameters<ClusterStore["subscribe"]>): () => void {
    const unsubscribe = super.subscribe(listener);
    this.subscriptions += 1;
    let isSubscribed = true;
    return () => {
      if (isSubscribed) this.subscriptions -= 1;
      isSubscribed = false;
      unsubscribe();
    };
  }
}

const pod = (name: string, note = ""): KubernetesObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "default", annotations: { note } },
  spec: { nodeName: "node", containers: [{ name: "main", image: "x" }] },
});

/** A gateway without an API server behind it. `mayGoOn` holds every authentication up. Returns its port. */
async function start(mayGoOn: Promise<void> = Promise.resolve()): Promise<number> {
  harness = await startGatewayHarness({ kubeletPort: 1 });
  store = new CountingStore();
  store.replaceAll([pod("web")], new Date(0));
  const tokens = new StaticTokens(parseTokenFile(`${TOKEN},jane,uid-1,dev\n`, "tokens"));
  const context = {
    ...harness.context,
    cluster: store,
    authenticator: {
      authenticate: async (incoming: Parameters<StaticTokens["authenticate"]>[0]) => {
        await mayGoOn;
        return tokens.authenticate(incoming);
      },
    },
  };
  const { server } = createApiServer(context, answerFromCluster(context, "v1.36.0+sluice"), {});
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  closeGateway = async () => {
    await closeServer(server, sockets);
    await harness.close();
  };
  return listen(server);
}

async function get(port: number, path: string, token?: string, method = "GET") {
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const sent = request({ port, path, method, host: "127.0.0.1", headers, agent: false }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  let body = "";
  for await (const chunk of response) body += chunk;
  return { status: response.statusCode, headers: response.headers, body };
}

async function watch(port: number) {
  const headers = { Authorization: `Bearer ${TOKEN}` };
  const sent = request({ port, path: WATCH, host: "127.0.0.1", headers, agent: false }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  response.on("error", () => {});
  let text = "";
  response.on("data", (chunk: Buffer) => {
    text += chunk;
  });
  const events = (): { type: string; object: KubernetesObject }[] =>
    text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  return { sent, response, events };
}

describe("who may ask", () => {
  for (const path of ["/version", "/version/", "/healthz", "/livez", "/readyz"]) {
    it(`${path}: everybody`, async () => {
      expect((await get(await start(), path)).status).toBe(200);
    });
  }

  for (const path of ["/api", "/apis", "/api/v1", "/api/v1/pods", "/api/v1/nodes/node", "/nowhere", "/"]) {
    it(`${path}: 401 without a token and with a wrong one`, async () => {
      const port = await start();
      for (const token of [undefined, "wrong", ""]) {
        const { status, headers, body } = await get(port, path, token);
        expect([status, headers["www-authenticate"]]).toEqual([401, undefined]);
        expect(headers["cache-control"]).toBe("no-cache, private");
        expect(JSON.parse(body)).toMatchObject({ kind: "Status", reason: "Unauthorized", code: 401 });
      }
    });
  }

  it("an upgrade to something that is no pod's stream: 401, and 400 with a token", async () => {
    const port = await start();
    for (const [line, code] of [
      ["X-None: 1", 401],
      [`Authorization: Bearer ${TOKEN}`, 400],
    ] as const) {
      const socket = await openClient(port);
      socket.write(
        `GET /api/v1/pods HTTP/1.1\r\nHost: g\r\n${line}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
      );
      expect((await readToEnd(socket)).text).toContain(`HTTP/1.1 ${code} `);
    }
  });
});

describe("what kubectl asks before it streams", () => {
  it("version, discovery, the pod", async () => {
    const port = await start();
    const ask = async (path: string): Promise<unknown> => JSON.parse((await get(port, path, TOKEN)).body);
    expect(await ask("/version")).toMatchObject({ major: "1", minor: "36", gitVersion: "v1.36.0+sluice" });
    expect(await ask("/version/")).toEqual(await ask("/version"));
    for (const path of ["/api", "/apis", "/api/v1"]) expect(await ask(`${path}/`)).toEqual(await ask(path));
    expect(await ask("/api")).toMatchObject({ kind: "APIVersions", versions: ["v1"] });
    expect(await ask("/apis")).toMatchObject({ kind: "APIGroupList" });
    expect(await ask("/api/v1")).toMatchObject({ kind: "APIResourceList", groupVersion: "v1" });
    expect(await ask("/api/v1/namespaces/default/pods/web")).toMatchObject({
      kind: "Pod",
      metadata: { name: "web", namespace: "default" },
      spec: { containers: [{ name: "main" }] },
    });
  });

  it("what is not there is a Status: 404, and 405 for writing", async () => {
    const port = await start();
    const missing = await get(port, "/api/v1/namespaces/default/pods/nope", TOKEN);
    expect([missing.status, JSON.parse(missing.body).message]).toEqual([404, 'pods "nope" not found']);
    expect((await get(port, "/nowhere", TOKEN)).status).toBe(404);
    expect((await get(port, "/api/v1/namespaces/default/pods/web", TOKEN, "DELETE")).status).toBe(405);
  });

  it("readyz says when the gateway drains", async () => {
    const port = await start();
    void harness.context.sessions.drain();
    expect((await get(port, "/readyz")).status).toBe(500);
    expect((await get(port, "/livez")).status).toBe(200);
  });
});

describe("watches", () => {
  it("tell of changes as they happen, and end when the client leaves", async () => {
    const port = await start();
    const { sent, events } = await watch(port);
    await expect.poll(() => events().map(({ type }) => type)).toEqual(["ADDED"]);
    store.replaceAll([pod("web"), pod("other")], new Date(0));
    await expect.poll(() => events().at(-1)?.object.metadata.name).toBe("other");
    store.replaceAll([pod("web")], new Date(0));
    await expect.poll(() => events().map(({ type }) => type)).toEqual(["ADDED", "ADDED", "DELETED"]);
    expect(store.subscriptions).toBe(1);
    sent.destroy();
    await expect.poll(() => store.subscriptions).toBe(0);
  });

  it("do not begin for a client that has left while it was asked who it is", async () => {
    let goOn: () => void = () => {};
    const port = await start(
      new Promise((resolve) => {
        goOn = resolve;
      }),
    );
    const socket = await openClient(port);
    socket.write(`GET ${WATCH} HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`);
    const other = await openClient(port);
    other.write("GET /version HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n");
    await readToEnd(other);
    socket.resetAndDestroy();
    // Another whole exchange later the gateway knows that the first client is gone.
    await get(port, "/version");
    goOn();
    await get(port, "/api", TOKEN);
    await expect.poll(() => store.subscriptions).toBe(0);
  });

  it("of large objects keep no listener for every time that they wait for the client", async () => {
    const warnings: string[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning.name);
    process.on("warning", onWarning);
    const { sent, events } = await watch(await start());
    for (let round = 1; round <= 20; round++) {
      store.replaceAll([pod("web", String(round).padStart(1_000_000, "x"))], new Date(0));
      await expect.poll(() => events().length, { interval: 5 }).toBe(round + 1);
    }
    process.off("warning", onWarning);
    expect(warnings).toEqual([]);
    sent.destroy();
    await expect.poll(() => store.subscriptions).toBe(0);
  });
});
