import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { type EchoedRequest, type EchoPod, startEchoPod } from "../../support/echo-service.ts";
import { eventually } from "../../support/eventually.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { ask, connectHttp2, openWebSocket } from "../../support/http2-client.ts";
import { closedPort } from "../../support/misbehaving-servers.ts";
import { exchangeOver } from "../../support/proxied-socket.ts";

/** Sessions of clients with one endpoint, over every protocol, at two replicas that share nothing. */
const doors: FrontDoor[] = [];
let pods: EchoPod[] = [];
let sockets: WebSocketServer[] = [];
const PREFIX = "nginx.ingress.kubernetes.io";

function objectsWith(app: readonly { readonly port: number }[]): object[] {
  const ports = sockets.map((server) => ({ port: (server.address() as AddressInfo).port }));
  const ingress = (name: string, service: string, more: object = {}, paths: readonly string[] = ["/"]) =>
    ingressObject(
      name,
      {
        rules: [
          {
            host: `${name}.example.com`,
            http: {
              paths: paths.map((path) => ({ path, pathType: "Prefix", backend: backend(service) })),
            },
          },
        ],
      },
      { annotations: { [`${PREFIX}/affinity`]: "cookie", ...more } },
    );
  return [
    ...serviceObjects("app", app),
    ...serviceObjects("sockets", ports),
    ingress("app", "app"),
    ingress("paths", "app", {}, ["/größe", "/a b/\u010d\u010a", "/shop;v=1/cart", "/folder/"]),
    ingress("changing", "app", { [`${PREFIX}/session-cookie-change-on-failure`]: "true" }),
    ingress("sockets", "sockets", { [`${PREFIX}/session-cookie-name`]: "route" }),
  ];
}

beforeAll(async () => {
  pods = await Promise.all([0, 1, 2, 3].map((index) => startEchoPod("app", `app-${index}`)));
  sockets = [0, 1, 2, 3].map((index) => {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    return server.on("connection", (socket) => socket.send(`pod ${index}`));
  });
  await Promise.all(sockets.map((server) => once(server, "listening")));
  for (let count = 0; count < 2; count++) doors.push(await FrontDoor.start(objectsWith(pods)));
  await Promise.all(doors.map((door) => door.serves(4)));
});

afterAll(async () => {
  await Promise.all(doors.map((door) => door.stop()));
  await Promise.all(pods.map((pod) => pod.stop()));
  for (const server of sockets) server.close();
});

interface Answer {
  readonly pod: string;
  readonly cookie: string | undefined;
  readonly line: string | undefined;
}

async function get(door: FrontDoor, cookie?: string, host = "app", path = "/"): Promise<Answer> {
  const lines = [
    `GET ${path} HTTP/1.1`,
    `Host: ${host}.example.com`,
    ...(cookie === undefined ? [] : [`Cookie: x=y; ${cookie}`]),
  ];
  const text = await exchangeOver(
    connect(door.httpPort, "127.0.0.1"),
    [...lines, "Connection: close", "", ""].join("\r\n"),
  );
  const line = /^Set-Cookie: (.*)$/im.exec(text)?.[1]?.trim();
  const { pod } = JSON.parse(text.split("\r\n\r\n")[1] ?? "{}") as EchoedRequest;
  return { pod, line, cookie: line?.split(";")[0] };
}

const [first, second] = [() => doors[0] as FrontDoor, () => doors[1] as FrontDoor];

describe("affinity: cookie", () => {
  it("is given once, and leads to the same pod at every replica", async () => {
    const seen = new Set<string>();
    for (let client = 0; client < 12; client++) {
      const { pod, cookie, line } = await get(first());
      expect(line).toMatch(/^INGRESSCOOKIE=[0-9a-f]{32}; Path=\/; HttpOnly$/);
      seen.add(pod);
      for (const door of [first(), second(), first()])
        expect(await get(door, cookie)).toEqual({ pod, cookie: undefined, line: undefined });
    }
    expect(seen.size).toBeGreaterThan(1);
  });

  it.each([
    ["/gr%C3%B6%C3%9Fe/1", "/gr%C3%B6%C3%9Fe"],
    ["/a%20b/%C4%8D%C4%8A", "/a%20b/%C4%8D%C4%8A"],
    // A semicolon would end the attribute: the folder above it is the longest path that can be named.
    ["/shop;v=1/cart", "/"],
    // The rule is /folder/, which matches this too: with a slash the cookie would not come back.
    ["/folder", "/folder"],
  ])("on %s has a path that browsers match", async (path, expected) => {
    const { line } = await get(first(), undefined, "paths", path);
    expect(line).toMatch(/^INGRESSCOOKIE=[0-9a-f]{32}; /);
    expect(line).toContain(`; Path=${expected}; HttpOnly`);
  });

  it("is the same over HTTP/2, with Secure over TLS", async () => {
    const session = await connectHttp2(`https://127.0.0.1:${first().httpsPort}`);
    const begun = await ask(session, "/", { ":authority": "app.example.com" });
    const [line = ""] = begun.headers["set-cookie"] ?? [];
    expect(line).toMatch(/^INGRESSCOOKIE=[0-9a-f]{32}; Path=\/; Secure; HttpOnly$/);
    const pod = (JSON.parse(begun.body) as EchoedRequest).pod;
    const cookie = line.split(";")[0] ?? "";
    for (let times = 0; times < 4; times++) {
      const next = await ask(session, "/", { ":authority": "app.example.com", cookie: `a=b; ${cookie}` });
      expect((JSON.parse(next.body) as EchoedRequest).pod).toBe(pod);
      expect(next.headers["set-cookie"]).toBeUndefined();
    }
    session.close();
    expect((await get(second(), cookie)).pod).toBe(pod);
  });

  it("is given with an upgrade, and leads upgrades of both versions of HTTP", async () => {
    const open = async (cookie?: string) => {
      const headers = { Host: "sockets.example.com", ...(cookie !== undefined && { Cookie: cookie }) };
      const socket = new WebSocket(`ws://127.0.0.1:${first().httpPort}/`, { headers });
      const upgraded = once(socket, "upgrade");
      const [message] = (await once(socket, "message")) as [Buffer];
      const [response] = await upgraded;
      socket.close();
      return { pod: message.toString(), line: response.headers["set-cookie"]?.[0] as string | undefined };
    };
    const { pod, line = "" } = await open();
    expect(line).toMatch(/^route=[0-9a-f]{32}; Path=\/; HttpOnly$/);
    const cookie = line.split(";")[0] ?? "";
    for (let times = 0; times < 4; times++) expect(await open(cookie)).toEqual({ pod, line: undefined });
    const session = await connectHttp2(`http://127.0.0.1:${second().httpPort}`);
    const opened = await openWebSocket(session, "/", { ":authority": "sockets.example.com", cookie });
    if ("status" in opened) throw new Error(`refused: ${opened.status}`);
    const [message] = (await once(opened.socket, "message")) as [Buffer];
    expect(message.toString()).toBe(pod);
    session.destroy();
  });

  it("survives a pod that cannot be reached, and one that is gone", async () => {
    const unreachable = await closedPort();
    // Half of all sessions lead to the dead one.
    const [alive] = pods as [EchoPod];
    first().write(objectsWith([alive, { port: unreachable }]));
    await eventually("the endpoints", async () => {
      const answers = await Promise.all(Array.from({ length: 12 }, () => get(first())));
      return answers.every(({ pod }) => pod === alive.pod);
    });
    const values = Array.from(
      { length: 16 },
      (_, index) => `INGRESSCOOKIE=${index.toString(16).padStart(32, "0")}`,
    );
    const kept = await Promise.all(values.map((value) => get(first(), value)));
    expect(kept.map(({ pod, line }) => [pod, line])).toEqual(kept.map(() => [alive.pod, undefined]));
    const changing = await Promise.all(values.map((value) => get(first(), value, "changing")));
    const changed = changing.flatMap(({ cookie }) => (cookie === undefined ? [] : [cookie]));
    expect(changed.length).toBeGreaterThan(0);
    expect(changed.length).toBeLessThan(16);
    for (const cookie of changed)
      expect(await get(first(), cookie, "changing")).toEqual({
        pod: alive.pod,
        cookie: undefined,
        line: undefined,
      });
    first().write(objectsWith([alive]));
    await eventually("one endpoint", async () => {
      const answers = await Promise.all(values.map((value) => get(first(), value, "changing")));
      return answers.every(({ pod, line }) => pod === alive.pod && line === undefined);
    });
  });
});
