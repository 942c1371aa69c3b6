import { once } from "node:events";
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSelfSignedCertificate } from "../../../packages/client/src/net/self-signed.ts";
import { type EchoPod, startEchoPod } from "../../support/echo-service.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";

const RULES = 5_000;
const CLASS = "networking.k8s.io/v1";
const base64 = (text: string) => Buffer.from(text).toString("base64");
const ruleOf = (host: string, path = "/") => ({
  host,
  http: { paths: [{ path, pathType: "Prefix", backend: backend("app") }] },
});
const secretOf = (name: string, data: object, type = "kubernetes.io/tls") => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name, namespace: "default" },
  type,
  data,
});
const classOf = (name: string, controller: string, metadata: object = {}) => ({
  apiVersion: CLASS,
  kind: "IngressClass",
  metadata: { name, ...metadata },
  spec: { controller },
});

/** Secrets that cannot be served, and what the log says of each. */
let faulty: Record<string, { data?: object; type?: string; problem: string }>;
let door: FrontDoor;
let pod: EchoPod;

beforeAll(async () => {
  const [good, other] = await Promise.all(
    ["good.example.com", "other"].map((name) => createSelfSignedCertificate([name], name)),
  );
  if (good === undefined || other === undefined) throw new Error("no certificates");
  const cert = base64(good.certPem);
  const key = base64(good.keyPem);
  const mismatch = "holds no certificate and key that belong together";
  faulty = {
    "half-a-key": {
      data: { "tls.crt": cert, "tls.key": base64(good.keyPem.slice(0, good.keyPem.length / 2)) },
      problem: mismatch,
    },
    "half-a-certificate": {
      data: { "tls.crt": base64(good.certPem.slice(0, good.certPem.length / 2)), "tls.key": key },
      problem: mismatch,
    },
    "anothers-key": { data: { "tls.crt": cert, "tls.key": base64(other.keyPem) }, problem: mismatch },
    "no-key": { data: { "tls.crt": cert, "tls.key": "" }, problem: "has no tls.key" },
    "no-certificate": { data: { "tls.crt": "", "tls.key": key }, problem: "has no tls.crt" },
    "another-type": {
      data: { "tls.crt": cert, "tls.key": key },
      type: "Opaque",
      problem: "is not of type kubernetes.io/tls",
    },
    missing: { problem: "does not exist" },
  };
  pod = await startEchoPod("app", "app-1");
  const secrets = Object.entries(faulty).flatMap(([name, { data, type }]) =>
    data === undefined ? [] : [secretOf(name, data, type)],
  );
  const bad = Object.keys(faulty).map((name) =>
    ingressObject(name, {
      tls: [{ hosts: [`${name}.example.com`], secretName: name }],
      rules: [ruleOf(`${name}.example.com`)],
    }),
  );
  door = await FrontDoor.start([
    ...serviceObjects("app", [pod]),
    secretOf("good", { "tls.crt": cert, "tls.key": key }),
    ...secrets,
    ...bad,
    ingressObject("good", {
      tls: [{ hosts: ["good.example.com"], secretName: "good" }],
      rules: [ruleOf("good.example.com", "/a")],
    }),
    ingressObject("large", {
      rules: Array.from({ length: RULES }, (_, index) => ruleOf(`host-${index}.example.com`)),
    }),
    classOf("foreign", "example.com/other"),
    ingressObject("foreign", { ingressClassName: "foreign", rules: [ruleOf("foreign.example.com")] }),
    classOf("older", "example.com/other", {
      annotations: IS_DEFAULT,
      creationTimestamp: "2026-01-01T00:00:00Z",
    }),
    classOf("newer", "sluice.dev/ingress-controller", {
      annotations: IS_DEFAULT,
      creationTimestamp: "2026-01-02T00:00:00Z",
    }),
    {
      apiVersion: CLASS,
      kind: "Ingress",
      metadata: { name: "classless", namespace: "default" },
      spec: { rules: [ruleOf("classless.example.com")] },
    },
  ]);
  await door.serves(bad.length + 3);
});

afterAll(async () => {
  await door?.stop();
  await pod?.stop();
});

const IS_DEFAULT = { "ingressclass.kubernetes.io/is-default-class": "true" };

/** The status and what the pod was asked. */
async function ask(
  target: string,
  host: string,
): Promise<{ status: number; path: string | undefined; host: string | undefined }> {
  const socket = connect(door.httpPort, "127.0.0.1").setEncoding("latin1");
  let received = "";
  socket.on("data", (text: string) => {
    received += text;
  });
  socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  await once(socket, "close");
  const [head = "", body = ""] = received.split("\r\n\r\n");
  const echoed = body.startsWith("{") ? JSON.parse(body) : {};
  return { status: Number(head.split(" ")[1]), path: echoed.path, host: echoed.host };
}

async function shown(servername: string): Promise<string> {
  const socket = connectTls({ port: door.httpsPort, servername, rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const subject = String(socket.getPeerX509Certificate()?.subject);
  socket.destroy();
  return subject;
}

describe("a Secret that cannot be served", () => {
  it.each([
    "half-a-key",
    "half-a-certificate",
    "anothers-key",
    "no-key",
    "no-certificate",
    "another-type",
    "missing",
  ])("%s: the default is, a log line says why, and its routes and others' certificates go on", async (name) => {
    expect(await shown(`${name}.example.com`)).toBe("CN=ingress.sluice.dev");
    expect(await ask("/", `${name}.example.com`)).toMatchObject({ status: 200 });
    const line = door.logged.find((text) => text.includes(`secret \\"${name}\\"`)) ?? "";
    expect(JSON.parse(line)).toMatchObject({
      ingress: name,
      reason: "InvalidCertificate",
      msg: expect.stringContaining(`secret "${name}" ${faulty[name]?.problem}`),
    });
    expect(line).toContain("; the default certificate is served");
    expect(await shown("good.example.com")).toBe("CN=good.example.com");
  });

  it("leaves nothing of its key in the log", () => {
    for (const { data = {} } of Object.values(faulty)) {
      const { "tls.key": key = "" } = data as Record<string, string>;
      const line = Buffer.from(key, "base64").toString().split("\n")[1];
      if (line) expect(door.logged.join("")).not.toContain(line);
    }
  });
});

describe("targets", () => {
  it.each([
    [
      "absolute-form: its host and path count",
      "http://good.example.com/a/b?c",
      "ignored.example.com",
      { status: 200, path: "/a/b?c", host: "good.example.com" },
    ],
    [
      "absolute-form for a host without routes",
      "http://nobody.example.com/a",
      "good.example.com",
      { status: 404 },
    ],
    [
      "dot segments are resolved, and forwarded so",
      "/x/../a/./b",
      "good.example.com",
      { status: 200, path: "/a/b" },
    ],
    ["and encoded ones", "/x/%2e%2E/a/b", "good.example.com", { status: 200, path: "/a/b" }],
    ["which lead out of a prefix too", "/a/%2e%2e/x", "good.example.com", { status: 404 }],
    ["an encoded slash is none", "/a%2Fb", "good.example.com", { status: 404 }],
    [
      "and is forwarded as it came",
      "/a/b%2f..%2Fc",
      "good.example.com",
      { status: 200, path: "/a/b%2f..%2Fc" },
    ],
  ])("%s", async (_what, target, host, expected) => {
    expect(await ask(target, host)).toMatchObject(expected);
  });
});

describe("classes and sizes", () => {
  it("a class of a foreign controller has no routes here", async () => {
    expect(await ask("/", "foreign.example.com")).toMatchObject({ status: 404 });
  });

  it("of two default classes the newest has the Ingresses without one", async () => {
    expect(await ask("/", "classless.example.com")).toMatchObject({ status: 200 });
  });

  it("each of 5,000 rules of one Ingress is served", async () => {
    for (const index of [0, 1, RULES / 2, RULES - 1]) {
      expect(await ask("/", `host-${index}.example.com`)).toMatchObject({ status: 200 });
    }
    expect(await ask("/", `host-${RULES}.example.com`)).toMatchObject({ status: 404 });
  });
});
