import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { createSelfSignedCertificate } from "../../../packages/client/src/net/self-signed.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";

const CA_ANNOTATION = "sluice.dev/backend-ca-secret";
const NAME_ANNOTATION = "sluice.dev/backend-server-name";

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function portOf(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

/** An https pod with a certificate for `name`, its own authority; it says by what it was asked. */
async function securePod(
  name: string,
): Promise<{ port: number; ca: string; server: Server; posted: string[] }> {
  const { certPem, keyPem } = await createSelfSignedCertificate([name]);
  const posted: string[] = [];
  const server = createSecureServer({ cert: certPem, key: keyPem, ALPNProtocols: ["h2", "http/1.1"] });
  server.on("request", (request, response) => {
    const { servername, alpnProtocol } = request.socket as TLSSocket & { servername: string };
    const { host, "x-forwarded-proto": proto } = request.headers;
    posted.push(request.url ?? "");
    response.end(JSON.stringify({ servername, alpnProtocol, host, proto }));
  });
  return { port: await portOf(server), ca: certPem, server, posted };
}

function authoritySecret(ca: string): object {
  const data = { "ca.crt": Buffer.from(ca).toString("base64") };
  return { apiVersion: "v1", kind: "Secret", metadata: { name: "ca", namespace: "default" }, data };
}

interface Wanted {
  readonly appProtocol?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly more?: readonly object[];
}

function objectsFor(
  ports: readonly number[],
  { appProtocol = "https", annotations = {}, more = [] }: Wanted,
) {
  const pods = ports.map((port) => ({ port }));
  const ingress = ingressObject("all", { defaultBackend: backend("app") }, { annotations });
  return [...serviceObjects("app", pods, { appProtocol }), ingress, ...more];
}

async function doorTo(ports: readonly number[], wanted: Wanted = {}): Promise<FrontDoor> {
  const door = await FrontDoor.start(objectsFor(ports, wanted));
  cleanups.push(() => door.stop());
  return door;
}

function ask(door: FrontDoor, path = "/"): Promise<Response> {
  return fetch(`http://127.0.0.1:${door.httpPort}${path}`);
}

/** fetch does not let its caller write Host. */
async function statusFor(door: FrontDoor, host: string): Promise<number | undefined> {
  const request = httpRequest({
    port: door.httpPort,
    host: "127.0.0.1",
    agent: false,
    headers: { host },
  }).end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}

function failuresLogged(door: FrontDoor): string[] {
  return door.logged.filter((line) => line.includes("TLS with an endpoint of a Service failed"));
}

describe("a Service port whose appProtocol says TLS", () => {
  it.each(["https", "HTTPS", "wss", "kubernetes.io/wss"])("%s is spoken to over TLS", async (appProtocol) => {
    const { port } = await securePod("elsewhere.example.com");
    const door = await doorTo([port], { appProtocol });
    const answer = await ask(door);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({
      servername: "app.default.svc",
      alpnProtocol: "http/1.1",
      host: `127.0.0.1:${door.httpPort}`,
      proto: "http",
    });
    expect(failuresLogged(door)).toEqual([]);
  });

  it("is asked over a kept connection, and in plain text as soon as it says so", async () => {
    const { server, port } = await securePod("x");
    let connections = 0;
    server.on("secureConnection", () => connections++);
    const door = await doorTo([port]);
    for (let round = 0; round < 3; round++) await (await ask(door)).text();
    expect(connections).toBe(1);
    const plain = createServer((_, response) => response.end("plain"));
    door.write(objectsFor([await portOf(plain)], { appProtocol: "http" }));
    await expect.poll(async () => (await ask(door)).text()).toBe("plain");
  });

  it("carries WebSockets, both ways and whole", async () => {
    const { server, port } = await securePod("x");
    const sockets = new WebSocketServer({ server });
    sockets.on("connection", (socket) => socket.on("message", (data) => socket.send(data)));
    const door = await doorTo([port], { appProtocol: "kubernetes.io/wss" });
    const client = new WebSocket(`ws://127.0.0.1:${door.httpPort}/chat`);
    cleanups.push(() => client.terminate());
    await once(client, "open");
    const large = Buffer.alloc(1_000_000, 7);
    client.send(large);
    const [echoed] = (await once(client, "message")) as [Buffer];
    expect(echoed.equals(large)).toBe(true);
  });

  it("but whose pod speaks none is 502, and a log line says why, once", async () => {
    let requests = 0;
    const port = await portOf(createServer(() => requests++));
    const door = await doorTo([port]);
    for (let round = 0; round < 3; round++) expect((await ask(door)).status).toBe(502);
    expect(requests).toBe(0);
    const lines = failuresLogged(door);
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      level: "warn",
      namespace: "default",
      service: "app",
      endpoint: `127.0.0.1:${port}`,
      cause: "tls: first record does not look like a TLS handshake",
    });
  });
});

describe("a CA Secret", () => {
  it("is what the certificate must be of, with the Service's name", async () => {
    const { port, ca } = await securePod("app.default.svc");
    const door = await doorTo([port], {
      annotations: { [CA_ANNOTATION]: "ca" },
      more: [authoritySecret(ca)],
    });
    expect((await ask(door)).status).toBe(200);
  });

  it("with the name of an annotation, which is sent as SNI", async () => {
    const { port, ca } = await securePod("pods.example.com");
    const annotations = { [CA_ANNOTATION]: "ca", [NAME_ANNOTATION]: "pods.example.com" };
    const door = await doorTo([port], { annotations, more: [authoritySecret(ca)] });
    expect(await (await ask(door)).json()).toMatchObject({ servername: "pods.example.com" });
  });

  it.each([
    ["of another authority", "app.default.svc", true, "x509: certificate signed by unknown authority"],
    ["for another name", "other.example.com", false, "not app.default.svc"],
  ])("a certificate %s is 502, of requests and of upgrades", async (_what, name, isForeign, cause) => {
    const pod = await securePod(name);
    const ca = isForeign ? (await securePod(name)).ca : pod.ca;
    const door = await doorTo([pod.port], {
      annotations: { [CA_ANNOTATION]: "ca" },
      more: [authoritySecret(ca)],
    });
    const client = new WebSocket(`ws://127.0.0.1:${door.httpPort}/chat`);
    const [, response] = await once(client, "unexpected-response");
    expect(response.statusCode).toBe(502);
    client.on("error", () => {}).terminate();
    expect(failuresLogged(door)).toEqual([expect.stringContaining(cause)]);
    expect((await ask(door)).status).toBe(502);
    expect(pod.posted).toEqual([]);
    expect(failuresLogged(door)).toHaveLength(1);
  });

  it.each([
    ["that is not there", [], "does not exist"],
    ["without certificate", [authoritySecret("nothing")], "holds no certificate in ca.crt"],
  ])("%s is 503 and sends nothing; it serves when it comes", async (_what, more, text) => {
    const pod = await securePod("app.default.svc");
    const wanted = { annotations: { [CA_ANNOTATION]: "ca" } };
    const door = await doorTo([pod.port], { ...wanted, more });
    expect((await ask(door)).status).toBe(503);
    expect(door.logged.join("")).toContain(text);
    expect(pod.posted).toEqual([]);
    door.write(objectsFor([pod.port], { ...wanted, more: [authoritySecret(pod.ca)] }));
    await expect.poll(async () => (await ask(door)).status).toBe(200);
  });

  it("that is replaced counts for kept connections too", async () => {
    const pod = await securePod("app.default.svc");
    const other = await securePod("app.default.svc");
    const annotations = { [CA_ANNOTATION]: "ca" };
    const door = await doorTo([pod.port], { annotations, more: [authoritySecret(pod.ca)] });
    expect((await ask(door)).status).toBe(200);
    door.write(objectsFor([pod.port], { annotations, more: [authoritySecret(other.ca)] }));
    await expect.poll(async () => (await ask(door)).status).toBe(502);
  });

  it("of one route is nothing to another of the same Service", async () => {
    const pod = await securePod("app.default.svc");
    const other = await securePod("app.default.svc");
    const rules = [
      {
        host: "strict.example.com",
        http: { paths: [{ path: "/", pathType: "Prefix", backend: backend("app") }] },
      },
    ];
    const strict = ingressObject("strict", { rules }, { annotations: { [CA_ANNOTATION]: "ca" } });
    const door = await doorTo([pod.port], { more: [strict, authoritySecret(other.ca)] });
    for (let round = 0; round < 2; round++) {
      expect((await ask(door)).status).toBe(200);
      expect(await statusFor(door, "strict.example.com")).toBe(502);
    }
  });
});
