import { once } from "node:events";
import { createServer as createHttp2Server } from "node:http2";
import { type AddressInfo, connect } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { type EchoedRequest, type EchoPod, startEchoPod } from "../../support/echo-service.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { ask, connectHttp2, openWebSocket } from "../../support/http2-client.ts";
import { exchangeOver } from "../../support/proxied-socket.ts";

/** What backends are sent by annotations, over every protocol. */
let door: FrontDoor;
let pod: EchoPod;
let sockets: WebSocketServer;
const h2c = createHttp2Server((request, response) => {
  response.setHeader("X-Path", request.url);
  response.setHeader("Location", "/left/alone");
  response.setHeader("Set-Cookie", "a=b; Path=/left/alone");
  response.end();
});
const NGINX = "nginx.ingress.kubernetes.io";

beforeAll(async () => {
  pod = await startEchoPod("app", "app-1");
  sockets = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  sockets.on("connection", (socket, { url }) => socket.send(url ?? ""));
  h2c.listen(0, "127.0.0.1");
  await Promise.all([once(sockets, "listening"), once(h2c, "listening")]);
  const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;
  const at = (path: string, service: string, pathType = "ImplementationSpecific") => ({
    path,
    pathType,
    backend: backend(service),
  });
  const ingress = (name: string, annotations: object, ...paths: object[]) =>
    ingressObject(name, { rules: [{ host: `${name}.example.com`, http: { paths } }] }, { annotations });
  door = await FrontDoor.start([
    ...serviceObjects("app", [pod]),
    ...serviceObjects("sockets", [{ port: portOf(sockets) }]),
    ...serviceObjects("grpc", [{ port: portOf(h2c) }], { appProtocol: "kubernetes.io/h2c" }),
    ingress(
      "stripped",
      { "sluice.dev/strip-prefix": "true" },
      at("/app", "app", "Prefix"),
      at("/ws", "sockets", "Prefix"),
      at("/grpc", "grpc", "Prefix"),
    ),
    ingress("replaced", { "sluice.dev/rewrite-prefix": "/api/v1" }, at("/app", "app", "Prefix")),
    ingress(
      "nginx",
      {
        [`${NGINX}/rewrite-target`]: "/$2",
        [`${NGINX}/use-regex`]: "true",
        [`${NGINX}/x-forwarded-prefix`]: "/app",
      },
      at("/app(/|$)(.*)", "app"),
      at("/ws(/|$)(.*)", "sockets"),
    ),
    ingress("constant", { [`${NGINX}/rewrite-target`]: "/healthz" }, at("/status", "app")),
    ingress(
      "wrong",
      { [`${NGINX}/rewrite-target`]: "/$1$2" },
      at("/app(/|$)(.*)", "app"),
      at("/plain", "app"),
    ),
  ]);
  await door.serves(5);
});

afterAll(async () => {
  await door.stop();
  await pod.stop();
  sockets.close();
  h2c.close();
});

async function get(host: string, target: string, ...lines: string[]): Promise<EchoedRequest> {
  const head = [`GET ${target} HTTP/1.1`, `Host: ${host}.example.com`, ...lines, "Connection: close", "", ""];
  const answer = await exchangeOver(connect(door.httpPort, "127.0.0.1"), head.join("\r\n"));
  return JSON.parse(answer.split("\r\n\r\n")[1] ?? "") as EchoedRequest;
}

it.each([
  ["stripped", "/app/a%2Fb/%7euser?q=%2F/app&x=%zz", "/a%2Fb/%7euser?q=%2F/app&x=%zz"],
  ["stripped", "/%61pp/x", "/x"],
  ["stripped", "/app?x", "/?x"],
  ["stripped", "/other/../app/x", "/x"],
  ["replaced", "/app/x", "/api/v1/x"],
  ["replaced", "/app", "/api/v1"],
  ["nginx", "/app/x?y", "/x?y"],
  ["nginx", "/app", "/"],
  ["constant", "/status/x?y", "/healthz?y"],
  ["wrong", "/plain/x", "/plain/x"],
])("%s: %s reaches the backend as %s", async (host, asked, expected) => {
  expect((await get(host, asked)).path).toBe(expected);
});

it("is the same over HTTP/2, and says the prefix where an annotation does", async () => {
  const session = await connectHttp2(`https://127.0.0.1:${door.httpsPort}`);
  const { body } = await ask(session, "/app/x?y", { ":authority": "nginx.example.com" });
  session.close();
  const { path, headers } = JSON.parse(body) as EchoedRequest;
  expect([path, headers["X-Forwarded-Prefix"]]).toEqual(["/x?y", ["/app"]]);
  const stranger = await get("stripped", "/app/x", "X-Forwarded-Prefix: /evil");
  expect(stranger.headers).not.toHaveProperty("X-Forwarded-Prefix");
});

it("h2c backends are sent the same; their redirects and cookies stay as they are", async () => {
  const session = await connectHttp2(`http://127.0.0.1:${door.httpPort}`);
  const { headers } = await ask(session, "/grpc/pkg.Service/Method", {
    ":authority": "stripped.example.com",
  });
  session.close();
  expect(headers).toMatchObject({
    "x-path": "/pkg.Service/Method",
    location: "/left/alone",
    "set-cookie": ["a=b; Path=/left/alone"],
  });
});

it.each(["stripped", "nginx"])("WebSockets of %s, over both versions of HTTP", async (host) => {
  const { WebSocket } = await import("ws");
  const overHttp1: WebSocket = new WebSocket(`ws://127.0.0.1:${door.httpPort}/ws/chat?room=1`, {
    headers: { Host: `${host}.example.com` },
  });
  const [message] = (await once(overHttp1, "message")) as [Buffer];
  expect(message.toString()).toBe("/chat?room=1");
  overHttp1.close();
  const session = await connectHttp2(`http://127.0.0.1:${door.httpPort}`);
  const opened = await openWebSocket(session, "/ws/chat?room=2", { ":authority": `${host}.example.com` });
  if ("status" in opened) throw new Error(`refused: ${opened.status}`);
  const [second] = (await once(opened.socket, "message")) as [Buffer];
  expect(second.toString()).toBe("/chat?room=2");
  session.destroy();
});

it("an annotation that is not served is reported", () => {
  const reasons = door.logged
    .filter((line) => line.includes("rewrite-target"))
    .map((line) => JSON.parse(line));
  expect(reasons).toEqual([expect.objectContaining({ ingress: "wrong", reason: "InvalidAnnotation" })]);
});
