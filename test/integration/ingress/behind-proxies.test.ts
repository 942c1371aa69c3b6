import { once } from "node:events";
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSelfSignedCertificate } from "../../../packages/client/src/net/self-signed.ts";
import { type EchoedRequest, type EchoPod, startEchoPod } from "../../support/echo-service.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";

/** What load balancers and browsers send that nginx and HAProxy serve. */
let door: FrontDoor;
let pod: EchoPod;
const PROXY = "127.0.0.9";

beforeAll(async () => {
  pod = await startEchoPod("app", "app-1");
  const { certPem, keyPem } = await createSelfSignedCertificate(["ok.example.com"], "ok.example.com");
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const rule = (host: string, ...paths: string[]) => ({
    host,
    http: {
      paths: paths.map((path) => ({ path, pathType: "ImplementationSpecific", backend: backend("app") })),
    },
  });
  door = await FrontDoor.start(
    [
      ...serviceObjects("app", [pod]),
      {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: "ok", namespace: "default" },
        type: "kubernetes.io/tls",
        data: { "tls.crt": base64(certPem), "tls.key": base64(keyPem) },
      },
      ingressObject(
        "redirected",
        { rules: [rule("redirected.example.com", "/")] },
        { annotations: { "sluice.dev/tls-redirect": "true" } },
      ),
      ingressObject("paths", {
        tls: [{ hosts: ["ok.example.com"], secretName: "ok" }],
        rules: [
          rule("ok.example.com", "/%7Euser", "/caf\u00e9", "/a b", "/{id}"),
          rule("*.preview.example.com", "/"),
        ],
        defaultBackend: backend("app"),
      }),
    ],
    {},
    { edge: { trustedProxies: [PROXY] } },
  );
  await door.serves(2);
});

afterAll(async () => {
  await door.stop();
  await pod.stop();
});

/** The answer to a request as it is written here, from an address of this machine. */
async function answerTo(head: string, localAddress = "127.0.0.1"): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port: door.httpPort, localAddress });
  return exchange(socket, head);
}

async function exchange(socket: ReturnType<typeof connect>, head: string): Promise<string> {
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString();
  });
  socket.write(head);
  await once(socket, "close");
  return received;
}

const get = (path: string, host: string, ...lines: string[]): string =>
  [`GET ${path} HTTP/1.1`, `Host: ${host}`, ...lines, "Connection: close", "", ""].join("\r\n");
const echoed = (answer: string): EchoedRequest =>
  JSON.parse(answer.split("\r\n\r\n")[1] ?? "") as EchoedRequest;

describe("sluice.dev/tls-redirect", () => {
  it.each([
    ["a trusted proxy that ended TLS", PROXY, ["X-Forwarded-Proto: https"], 200],
    [
      "a trusted proxy before another one that ended TLS",
      PROXY,
      ["X-Forwarded-Proto: https, http", "X-Forwarded-For: 203.0.113.9, 127.0.0.9"],
      200,
    ],
    [
      "a client whose claim a trusted proxy passed on",
      PROXY,
      ["X-Forwarded-Proto: https, http", "X-Forwarded-For: 203.0.113.9"],
      308,
    ],
    ["a trusted proxy that was asked by plain HTTP", PROXY, ["X-Forwarded-Proto: http"], 308],
    ["a trusted proxy that does not say", PROXY, [], 308],
    ["a stranger who says https", "127.0.0.1", ["X-Forwarded-Proto: https"], 308],
  ])("of a request by %s", async (_who, address, lines, status) => {
    const answer = await answerTo(get("/a?b", "redirected.example.com", ...lines), address);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    if (status === 308) expect(answer).toContain("Location: https://redirected.example.com/a?b\r\n");
  });
});

describe("rule paths", () => {
  it.each([
    "/%7Euser",
    "/~user/x",
    "/caf%C3%A9",
    "/caf%c3%a9",
    "/a%20b",
    "/%7Bid%7D",
    "/{id}",
  ])("serve a request for %s as it was written", async (path) => {
    const answer = await answerTo(get(path, "ok.example.com"));
    expect(echoed(answer)).toMatchObject({ path, service: "app" });
  });
});

describe("HTTP/1.0 without Host", () => {
  it("is served by what serves every host, as a health check of HAProxy's expects", async () => {
    const answer = await answerTo("OPTIONS / HTTP/1.0\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(echoed(answer).host).toBe(`127.0.0.1:${pod.port}`);
    expect(echoed(answer).headers).not.toHaveProperty("X-Forwarded-Host");
  });

  it("is a bad request with HTTP/1.1, and with two of them", async () => {
    expect(await answerTo("GET / HTTP/1.1\r\nConnection: close\r\n\r\n")).toMatch(/^HTTP\/1\.1 400 /);
    expect(await answerTo("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n")).toMatch(/^HTTP\/1\.1 400 /);
  });
});

it("serves hosts whose labels end in a hyphen", async () => {
  expect(await answerTo(get("/", "feature-.preview.example.com"))).toMatch(/^HTTP\/1\.1 200 /);
});

describe("TLS", () => {
  it("takes a server name with a trailing dot for the name", async () => {
    const socket = connectTls({
      port: door.httpsPort,
      servername: "ok.example.com.",
      rejectUnauthorized: false,
    });
    await once(socket, "secureConnect");
    expect(socket.getPeerX509Certificate()?.subject).toBe("CN=ok.example.com");
    socket.destroy();
  });

  it("serves clients that offer http/1.0 alone", async () => {
    const socket = connectTls({
      port: door.httpsPort,
      servername: "ok.example.com",
      ALPNProtocols: ["http/1.0"],
      rejectUnauthorized: false,
    });
    expect(await exchange(socket, "GET /~user HTTP/1.0\r\nHost: ok.example.com\r\n\r\n")).toMatch(
      /^HTTP\/1\.1 200 /,
    );
  });
});
