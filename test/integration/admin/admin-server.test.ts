import { once } from "node:events";
import { request as httpRequest, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type AdminServerOptions, createAdminServer } from "../../../src/admin/admin-server.ts";
import { createLogger } from "../../../src/observability/logger.ts";
import { Metrics } from "../../../src/observability/metrics.ts";

const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  }
});

describe("health endpoints", () => {
  const readinessChecks = {
    ping: () => undefined,
    shutdown: () => "process is shutting down",
    broken: () => {
      throw new Error("no such file");
    },
  };
  const rows: { path: string; status: number; body: string }[] = [
    { path: "/livez", status: 200, body: "ok" },
    { path: "/livez?verbose", status: 200, body: "[+]ping ok\nlivez check passed\n" },
    { path: "/livez/ping", status: 200, body: "ok" },
    { path: "/livez/shutdown", status: 404, body: "404 page not found\n" },
    { path: "/readyz/toString", status: 404, body: "404 page not found\n" },
    { path: "/livez/ping/more", status: 404, body: "404 page not found\n" },
    {
      path: "/livez?verbose=true&exclude=ping",
      status: 200,
      body: "[+]ping excluded: ok\nlivez check passed\n",
    },
    {
      path: "/livez?verbose&exclude=nope",
      status: 200,
      body: '[+]ping ok\nwarn: some health checks cannot be excluded: no matches for "nope"\nlivez check passed\n',
    },
    {
      path: "/readyz",
      status: 500,
      body: "[+]ping ok\n[-]shutdown failed: reason withheld\n[-]broken failed: reason withheld\nreadyz check failed\n",
    },
    {
      path: "/readyz?exclude=shutdown&verbose",
      status: 500,
      body: "[+]ping ok\n[+]shutdown excluded: ok\n[-]broken failed: reason withheld\nreadyz check failed\n",
    },
    { path: "/readyz?exclude=shutdown&exclude=broken", status: 200, body: "ok" },
    { path: "/readyz/shutdown", status: 500, body: "internal server error: process is shutting down\n" },
    { path: "/readyz/broken", status: 500, body: "internal server error: no such file\n" },
  ];
  it.each(rows)("GET $path is $status", async ({ path, status, body }) => {
    const port = await listen({ readinessChecks });
    const answer = await ask(port, "GET", path);
    expect([answer.status, answer.body]).toEqual([status, body]);
    expect(answer.headers).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
    });
  });

  it("follow the state they watch", async () => {
    let isDraining = false;
    const port = await listen({ readinessChecks: { draining: () => (isDraining ? "draining" : undefined) } });
    expect((await ask(port, "GET", "/readyz")).status).toBe(200);
    isDraining = true;
    expect((await ask(port, "GET", "/readyz")).status).toBe(500);
  });
});

describe("the admin listener", () => {
  it("exposes the metrics of its gateway", async () => {
    const metrics = new Metrics({ withProcessMetrics: false });
    metrics.streamingRefused("exec", undefined, 403);
    const answer = await ask(await listen({ metrics }), "GET", "/metrics");
    expect(answer.headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(answer.body).toContain(
      'sluice_streaming_requests_total{subresource="exec",plan="none",code="403"} 1\n',
    );
  });

  it("shows what came of each probe, where probes run", async () => {
    const probe = { namespace: "default", pod: "web", container: "main", probe: "Liveness", rounds: 2 };
    const answer = await ask(await listen({ listProbes: () => [probe] }), "GET", "/debug/probes");
    expect(JSON.parse(answer.body)).toEqual([probe]);
    expect((await ask(await listen({}), "GET", "/debug/probes")).status).toBe(404);
  });

  it("lists running sessions as JSON", async () => {
    const session = {
      id: "1",
      subresource: "exec",
      namespace: "default",
      pod: "web",
      node: "node-ws",
      user: "<b>alice</b>",
      plan: { kind: "pass-through", reason: "node-speaks-websocket" },
      startedAt: new Date(0),
      downstreamBytes: 5,
      upstreamBytes: 7,
    };
    const answer = await ask(
      await listen({ listSessions: () => ({ sessions: [session], partial: [] }) }),
      "GET",
      "/debug/sessions",
    );
    expect(answer.headers["content-type"]).toBe("application/json");
    expect(JSON.parse(answer.body)).toEqual([{ ...session, startedAt: "1970-01-01T00:00:00.000Z" }]);
  });

  it("serves a page that loads and runs nothing from elsewhere", async () => {
    const answer = await ask(await listen({}), "GET", "/");
    expect(answer.headers["content-type"]).toBe("text/html; charset=utf-8");
    const policy = String(answer.headers["content-security-policy"]);
    expect(policy).toMatch(
      /^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; connect-src 'self'/,
    );
    expect(answer.body).not.toMatch(/https?:|innerHTML|src=/);
    expect(
      () => new Function(/<script>(.*)<\/script>/s.exec(answer.body)?.[1] ?? "not found("),
    ).not.toThrow();
  });

  it("answers HEAD with the same head and no body", async () => {
    const port = await listen({});
    const [get, head] = [await ask(port, "GET", "/livez"), await ask(port, "HEAD", "/livez")];
    expect(head).toEqual({ ...get, body: "", headers: { ...head.headers } });
    expect(head.headers["content-length"]).toBe("2");
  });

  it.each(["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])("refuses %s", async (method) => {
    const answer = await ask(await listen({}), method, "/livez");
    expect([answer.status, answer.headers.allow]).toEqual([405, "GET, HEAD"]);
  });

  it.each([
    "/nope",
    "//livez",
    "/livez/",
    "/debug",
    "/api/v1/namespaces/default/pods/web/exec",
    "http://evil.test/livez",
  ])("knows nothing of %s", async (path) => {
    expect((await ask(await listen({}), "GET", path)).status).toBe(404);
  });

  it.each([
    "evil.test",
    "evil.test:8081",
    "10.0.0.1.evil.test",
    "gateway.svc.evil.test",
    "localhost.evil.test.",
  ])("answers nothing for a site of somebody else's: %s", async (host) => {
    const port = await listen({ allowedHosts: ["ops.example.com"] });
    for (const path of ["/", "/metrics", "/debug/sessions", "/livez"]) {
      const answer = await exchange(
        port,
        `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      );
      expect(answer).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/);
    }
  });

  it.each([
    "127.0.0.1:1",
    "[::1]:1",
    "[fd00::1]",
    "localhost",
    "LOCALHOST:8081",
    "gateway",
    "gateway.sluice.svc:8081",
    "gateway.sluice.svc.cluster.local",
    "OPS.example.com:8081",
  ])("answers for a name of its own: %s", async (host) => {
    const port = await listen({ allowedHosts: ["ops.example.com"] });
    const answer = await exchange(port, `GET /livez HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  it("never switches protocols: an upgrade gets an ordinary answer", async () => {
    const port = await listen({});
    const head = "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: SPDY/3.1\r\n\r\n";
    expect(await exchange(port, head)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\r\n\r\nok$/s);
  });

  it("bounds a request's head", async () => {
    const port = await listen({});
    const head = `GET /livez HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(9_000)}\r\n\r\n`;
    expect(await exchange(port, head)).toMatch(/^HTTP\/1\.1 431 /);
  });

  it("bounds its connections", async () => {
    const port = await listen({ limits: { maxAdminConnections: 1 } });
    const first = connect(port, "127.0.0.1");
    await once(first, "connect");
    // Until the server has counted the first one.
    first.write("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
    await once(first, "data");
    expect(await exchange(port, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")).toBe("");
    first.destroy();
  });

  it("is not starved by connections that send no whole request, of one address or several", async () => {
    const port = await listen({ limits: { maxAdminConnections: 20 } });
    const stalled = await Promise.all(
      Array.from({ length: 300 }, async (_, index) => {
        const socket = connect({ port, host: "127.0.0.1", localAddress: `127.0.0.${(index % 3) + 1}` });
        socket.on("error", () => {});
        await once(socket, "connect");
        if (index % 2 === 0) socket.write("GET /livez HTTP/1.1\r\nHost: ");
        return socket;
      }),
    );
    for (let attempt = 0; attempt < 5; attempt++) {
      expect(await exchange(port, "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).toContain(
        "200 OK",
      );
    }
    // The youngest keep their places.
    await expect
      .poll(() => stalled.filter(({ readyState }) => readyState === "open").length)
      .toBeLessThan(20);
    for (const socket of stalled) socket.destroy();
  });

  it("leaves places to other addresses when one has sent whole requests on all of its connections", async () => {
    const port = await listen({ limits: { maxAdminConnections: 8 } });
    const greedy = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const socket = connect(port, "127.0.0.1").on("error", () => {});
        await once(socket, "connect");
        socket.write("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
        await new Promise<void>((resolve) =>
          socket.once("data", () => resolve()).once("close", () => resolve()),
        );
        return socket;
      }),
    );
    expect(greedy.filter(({ destroyed, readyState }) => !destroyed && readyState === "open")).toHaveLength(6);
    const other = connect({ port, host: "127.0.0.1", localAddress: "127.0.0.2" });
    other.write("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(String((await once(other, "data"))[0])).toContain("200 OK");
    for (const socket of [...greedy, other]) socket.destroy();
  });

  it("answers 500 and says nothing when a part of it fails, and logs why", async () => {
    const lines: string[] = [];
    const fail = () => Promise.reject(new Error("broken metrics"));
    const failing = { expose: fail, exposeOpenMetrics: fail };
    const logger = createLogger({ level: "info", destination: { write: (line) => lines.push(line) } });
    const answer = await ask(await listen({ metrics: failing, logger }), "GET", "/metrics");
    expect([answer.status, answer.body]).toEqual([500, "internal server error\n"]);
    expect(lines.join("")).toContain("broken metrics");
  });
});

describe("/debug/nodes", () => {
  const nodes = ["a", "b"].map((name) => ({
    name,
    capability: { declaresWebSocket: true, mode: "auto", avoidedPaths: [] },
  }));
  const listNodes = (name?: string) => nodes.filter((node) => name === undefined || node.name === name);

  it("lists all nodes, or the one that is asked for", async () => {
    const port = await listen({ listNodes });
    const namesOf = ({ body }: { body: string }) =>
      JSON.parse(body).map(({ name }: { name: string }) => name);
    expect(namesOf(await ask(port, "GET", "/debug/nodes"))).toEqual(["a", "b"]);
    expect(namesOf(await ask(port, "GET", "/debug/nodes?name=b"))).toEqual(["b"]);
    expect(namesOf(await ask(port, "GET", "/debug/nodes?name=c"))).toEqual([]);
  });

  it("is an empty list where there are no nodes, which the page shows", async () => {
    const port = await listen({}, ["listNodes"]);
    expect(await ask(port, "GET", "/debug/nodes")).toMatchObject({ status: 200, body: "[]\n" });
  });
});

async function listen(
  options: Partial<AdminServerOptions>,
  absent: readonly "listNodes"[] = [],
): Promise<number> {
  const all: AdminServerOptions = {
    readinessChecks: {},
    metrics: new Metrics({ withProcessMetrics: false }),
    listSessions: () => ({ sessions: [], partial: [] }),
    listNodes: () => [],
    limits: { maxAdminConnections: 10 },
    logger: createLogger({ level: "silent" }),
    ...options,
  };
  const present = Object.entries(all).filter(([name]) => !absent.some((other) => other === name));
  const server = createAdminServer(Object.fromEntries(present) as unknown as AdminServerOptions);
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

async function ask(port: number, method: string, path: string) {
  const request = httpRequest({ host: "127.0.0.1", port, method, path, agent: false });
  request.end();
  const [response] = (await once(request, "response")) as [import("node:http").IncomingMessage];
  let body = "";
  for await (const chunk of response.setEncoding("utf8")) {
    body += chunk;
  }
  const { date: _, ...headers } = response.headers;
  return { status: response.statusCode, headers, body };
}

/** Everything that comes back for raw bytes until the server closes. */
async function exchange(port: number, bytes: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(bytes);
  let received = "";
  socket.setEncoding("utf8").on("data", (chunk) => {
    received += chunk;
  });
  await once(socket, "close");
  return received;
}
