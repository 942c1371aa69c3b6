import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, request, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { afterEach, expect, it, onTestFinished } from "vitest";
import { eventually } from "../../../support/eventually.ts";
import { GatewayFiles } from "../../../support/gateway-files.ts";
import { ADMIN_TOKEN, READER_TOKEN, RuntimeNode, webSocketUpgrade } from "../../../support/runtime-node.ts";
import { issueCertificate } from "../../../support/test-certificates.ts";

let node: RuntimeNode;
afterEach(() => node?.stop());

const OWN_TOKEN = "token-of-sluice";
const seen = (request: IncomingMessage) => `${request.method} ${request.url}`;

async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A plain kubelet, and Sluice in front of it. */
async function start(answer: RequestListener): Promise<Server> {
  const kubelet = createServer(answer);
  const port = await listening(kubelet);
  node = await RuntimeNode.start({ listener: { upstream: { url: `http://127.0.0.1:${port}` } } });
  return kubelet;
}

/** A kubelet over TLS for the name `worker-1`, and what Sluice needs of it; `answers` gets every request. */
async function startTls(more: object, credentials: "certificate" | "token" = "token") {
  const files = new GatewayFiles();
  onTestFinished(() => files.remove());
  const authority = await issueCertificate({ commonName: "cluster" });
  const serving = await issueCertificate({ commonName: "worker-1" }, authority, {
    names: ["worker-1"],
    usage: "server",
  });
  const client = await issueCertificate({ commonName: "sluice" }, authority, { usage: "client" });
  const requests: IncomingMessage[] = [];
  const names: string[] = [];
  const options = { ...serving, ca: authority.cert, requestCert: true, rejectUnauthorized: false };
  const kubelet = createTlsServer(options, (incoming, response) => {
    requests.push(incoming);
    names.push(String((incoming.socket as TLSSocket).getPeerCertificate().subject?.CN));
    response.writeHead(incoming.url === "/configz" ? 401 : 200, { "X-Kubelet": "yes" }).end("answer");
  });
  const own =
    credentials === "token"
      ? { tokenFile: files.write("token", `${OWN_TOKEN}\n`) }
      : {
          clientCertificateFile: files.write("client.crt", client.cert),
          clientKeyFile: files.write("client.key", client.key),
        };
  const upstream = {
    url: `https://127.0.0.1:${await listening(kubelet)}`,
    serverName: "worker-1",
    certificateAuthorityFile: files.write("ca.crt", authority.cert),
    ...own,
    ...more,
  };
  node = await RuntimeNode.start({ listener: { upstream } });
  return { requests, names, files, authority };
}

it("relays what is not ours as it is, in Sluice's own name", async () => {
  const { requests } = await startTls({});
  const headers = {
    Cookie: "a=b",
    "X-Remote-User": "root",
    "Impersonate-User": "root",
    Accept: "text/plain",
  };
  const answer = await node.ask("/metrics/resource?x=%20y", { headers });
  expect(answer).toMatchObject({ status: 200, body: "answer", headers: { "x-kubelet": "yes" } });
  const [relayed] = requests;
  expect(relayed && seen(relayed)).toBe("GET /metrics/resource?x=%20y");
  expect(relayed?.headers).toMatchObject({ authorization: `Bearer ${OWN_TOKEN}`, accept: "text/plain" });
  for (const name of ["cookie", "x-remote-user", "impersonate-user"])
    expect(relayed?.headers).not.toHaveProperty(name);
  expect(JSON.stringify(relayed?.rawHeaders)).not.toContain(ADMIN_TOKEN);
});

it("shows its certificate, and the one that a reload finds", async () => {
  const { names, files, authority } = await startTls({}, "certificate");
  await node.ask("/metrics");
  const next = await issueCertificate({ commonName: "sluice-next" }, authority, { usage: "client" });
  files.write("client.crt", next.cert);
  files.write("client.key", next.key);
  await node.reload();
  await node.ask("/metrics");
  expect(names).toEqual(["sluice", "sluice-next"]);
});

it.each([
  ["another name", { serverName: "worker-2" }],
  ["an authority that is not its", { certificateAuthorityFile: undefined }],
])("refuses a kubelet with %s, in text", async (_, more) => {
  await startTls(more);
  const answer = await node.ask("/metrics");
  expect(answer.status).toBe(503);
  expect(answer.headers["content-type"]).toBe("text/plain; charset=utf-8");
  expect(answer.body).toMatch(/^error trying to reach the kubelet: /);
});

it("asks the caller's permission first, as a kubelet does, and the kubelet only then", async () => {
  const { requests } = await startTls({});
  expect(await node.ask("/metrics", { token: "" })).toMatchObject({ status: 401, body: "Unauthorized" });
  expect(await node.ask("/metrics", { token: READER_TOKEN })).toMatchObject({
    status: 403,
    body: "Forbidden (user=node-reader, verb=get, resource=nodes, subresource(s)=[metrics])\n",
  });
  expect(requests).toHaveLength(0);
  expect(await node.ask("/runningpods/", { token: READER_TOKEN })).toMatchObject({ status: 200 });
});

it("never relays what opens sessions, whatever its shape", async () => {
  const relayed: string[] = [];
  await start((incoming, response) => {
    relayed.push(seen(incoming));
    response.end();
  });
  for (const path of [
    "/exec",
    "/exec/default/web",
    "/attach/a/b/c/d/e",
    "/portForward/x",
    "/cri/exec/t",
    "/run/x",
  ]) {
    expect(await node.ask(path)).toMatchObject({ status: 404, body: "404 page not found\n" });
    const headers = webSocketUpgrade("v5.channel.k8s.io");
    expect(await node.ask(path, { headers })).toMatchObject({ status: 404, body: "404 page not found\n" });
  }
  expect((await node.ask("/containerLogs/default/web/other")).status).toBe(404);
  expect(relayed).toEqual([]);
  await node.ask("/pods");
  await node.ask("/execute");
  expect(relayed).toEqual(["GET /pods", "GET /execute"]);
});

it("streams both ways, and ends the kubelet's side with the client's", async () => {
  let left = false;
  const kubelet = await start((incoming, response) => {
    response.writeHead(200);
    incoming.on("data", (part) => response.write(`${part}!`));
    response.on("close", () => {
      left = true;
    });
  });
  expect(kubelet.listening).toBe(true);
  const sent = request(`http://${node.authority}/logs/?follow=true`, {
    method: "POST",
    headers: { Authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  sent.on("error", () => {});
  sent.write("one");
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  response.on("error", () => {});
  expect(String((await once(response, "data"))[0])).toBe("one!");
  sent.write("two");
  expect(String((await once(response, "data"))[0])).toBe("two!");
  sent.destroy();
  await eventually("the kubelet's side is closed", () => left);
});

it("relays an upgrade that is no session of a container, for callers that may create", async () => {
  const kubelet = await start((_, response) => void response.end());
  const upgraded: string[] = [];
  kubelet.on("upgrade", (incoming: IncomingMessage, socket: Socket) => {
    upgraded.push(seen(incoming));
    socket.on("error", () => {});
    socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  });
  const headers = webSocketUpgrade("x");
  expect((await node.ask("/future/stream", { headers, token: READER_TOKEN })).status).toBe(403);
  expect(upgraded).toEqual([]);
  expect((await node.ask("/future/stream", { headers })).status).toBe(101);
  expect(upgraded).toEqual(["GET /future/stream"]);
  await eventually("its place is free again", async () => (await node.ask("/pods")).status === 200);
});

it("answers in text while the kubelet is away", async () => {
  const kubelet = await start((_, response) => void response.end("here"));
  expect((await node.ask("/healthz")).body).toBe("here");
  kubelet.closeAllConnections();
  kubelet.close();
  await once(kubelet, "close");
  const answer = await node.ask("/healthz");
  expect(answer).toMatchObject({ status: 503, headers: { "content-type": "text/plain; charset=utf-8" } });
  expect(answer.body).toMatch(/^error trying to reach the kubelet: dial tcp .*connect: connection refused$/);
});

it("logs where the kubelet refuses Sluice, and reads its token again", async () => {
  const { files, requests } = await startTls({});
  expect((await node.ask("/configz")).status).toBe(401);
  const refused = node.logLines.filter((line) => line.includes("refused the credentials"));
  expect(refused).toHaveLength(1);
  expect(refused[0]).toContain('"path":"/configz"');
  files.write("token", "another");
  await node.ask("/pods");
  expect(requests.at(-1)?.headers.authorization).toBe("Bearer another");
  expect(node.logLines.join("")).not.toContain(OWN_TOKEN);
});
