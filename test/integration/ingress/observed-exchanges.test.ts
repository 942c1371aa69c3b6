import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { eventually } from "../../support/eventually.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { statusOf } from "./ask.ts";

let door: FrontDoor;
let webSockets: WebSocketServer;
let served: string;

beforeAll(async () => {
  const verifyClient = ({ req }: { req: IncomingMessage }): boolean => req.url !== "/refused";
  webSockets = new WebSocketServer({ port: 0, host: "127.0.0.1", verifyClient });
  webSockets.on("connection", (socket) => socket.on("message", (data) => socket.send(data)));
  await once(webSockets, "listening");
  const { port } = webSockets.address() as { port: number };
  door = await FrontDoor.start(
    [],
    { accessLog: { path: "access.log" } },
    { limits: { maxIngressMetricRoutes: 2 } },
  );
  const pod = await door.addPod("app");
  served = `127.0.0.1:${pod.port}`;
  const ruleOf = (host: string, service: string) => ({
    host,
    http: { paths: [{ path: "/", pathType: "Prefix", backend: backend(service) }] },
  });
  door.write([
    ...serviceObjects("app", [pod]),
    ...serviceObjects("chat", [{ port }]),
    ...serviceObjects("later", [pod]),
    ingressObject("shop", { rules: [ruleOf("shop.example", "app"), ruleOf("chat.example", "chat")] }),
    ingressObject("zoo", { rules: [ruleOf("zoo.example", "later")] }),
  ]);
  await door.serves(2);
});

afterAll(async () => {
  await door.stop();
  webSockets.close();
});

function lines(): Record<string, unknown>[] {
  const text = readFileSync(path.join(door.folder, "access.log"), "utf8");
  return text
    .split("\n")
    .flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Record<string, unknown>]));
}

it("writes a line for each exchange, with where it went and what it carried", async () => {
  const response = await fetch(`http://127.0.0.1:${door.httpPort}/nothing?token=s3cret`);
  expect(response.status).toBe(404);
  expect(await statusOf(door.httpPort, "shop.example")).toBe(200);
  const socket = new WebSocket(`ws://127.0.0.1:${door.httpPort}/room?token=s3cret`, {
    headers: { Host: "chat.example", "User-Agent": "tester" },
  });
  await once(socket, "open");
  socket.send("x".repeat(1_000));
  await once(socket, "message");
  socket.close();
  await eventually(
    () => JSON.stringify(lines()),
    () => lines().length === 3,
  );
  const route = { namespace: "default", ingress: "shop" };
  expect(lines()).toEqual([
    expect.objectContaining({
      method: "GET",
      path: "/nothing",
      status: 404,
      protocol: "http/1.1",
      scheme: "http",
    }),
    expect.objectContaining({
      ...route,
      service: "app",
      host: "shop.example",
      status: 200,
      endpoint: served,
    }),
    expect.objectContaining({ ...route, service: "chat", path: "/room", status: 101, userAgent: "tester" }),
  ]);
  const [refused, plain, upgraded] = lines();
  expect(refused).not.toHaveProperty("ingress");
  expect(refused?.["responseBytes"]).toBe(Buffer.byteLength(await response.text()));
  expect(plain?.["responseBytes"]).toBeGreaterThan(100);
  expect(upgraded?.["responseBytes"]).toBeGreaterThan(1_000);
  expect(upgraded?.["requestBytes"]).toBeGreaterThan(1_000);
  expect(JSON.stringify(lines())).not.toContain("s3cret");
});

it("counts by Ingress and Service, and together past the limit", async () => {
  for (const host of ["shop.example", "zoo.example", "zoo.example"]) {
    expect(await statusOf(door.httpPort, host)).toBe(200);
  }
  const metrics = await door.readMetrics();
  const ofRoute = (names: string, code: string) =>
    metrics.get(`sluice_ingress_route_requests_total{${names},code="${code}"}`) ?? 0;
  expect(ofRoute('namespace="default",ingress="shop",service="app"', "2xx")).toBeGreaterThan(0);
  expect(ofRoute('namespace="default",ingress="shop",service="chat"', "1xx")).toBe(1);
  expect(ofRoute('namespace="_other",ingress="_other",service="_other"', "2xx")).toBe(2);
  expect(ofRoute('namespace="_none",ingress="_none",service="_none"', "4xx")).toBe(1);
  expect(metrics.get("sluice_ingress_routes_without_series")).toBe(1);
});

it("writes a line for a method that is answered 501 before it is a request", async () => {
  const client = connect(door.httpPort, "127.0.0.1");
  client.write("LIST /v1/secret?token=s3cret HTTP/1.1\r\nHost: shop.example\r\n\r\n");
  const [answer] = (await once(client, "data")) as [Buffer];
  client.destroy();
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 501 Not Implemented\r\n/);
  await eventually(
    () => JSON.stringify(lines()),
    () => lines().some(({ method }) => method === "LIST"),
  );
  expect(lines().at(-1)).toMatchObject({ method: "LIST", path: "/v1/secret", status: 501, scheme: "http" });
});

it("says where a refused upgrade went, and what its answer carried", async () => {
  const socket = new WebSocket(`ws://127.0.0.1:${door.httpPort}/refused`, {
    headers: { Host: "chat.example" },
  });
  const [request, response] = await once(socket, "unexpected-response");
  const body = Buffer.concat(await response.toArray());
  request.destroy();
  await eventually(
    () => JSON.stringify(lines()),
    () => lines().some(({ path: asked }) => asked === "/refused"),
  );
  const { port } = webSockets.address() as { port: number };
  expect(lines().at(-1)).toMatchObject({
    service: "chat",
    status: 401,
    endpoint: `127.0.0.1:${port}`,
    responseBytes: body.byteLength,
  });
  expect(body.toString()).toBe("Unauthorized");
});
