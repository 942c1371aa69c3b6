import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { request as httpsRequest } from "node:https";
import type { TLSSocket } from "node:tls";
import { generate } from "selfsigned";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EchoedRequest } from "../../support/echo-service.ts";
import { eventually } from "../../support/eventually.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";

/*
 * The scenarios of kubernetes-sigs/ingress-controller-conformance, with its assertions, over manifests and over a live API. Each
 * has a fresh connection, no compression, and the User-Agent of Go's client.
 */

const SOURCES = ["manifests", "live"] as const;

interface Captured {
  readonly status: number;
  readonly proto: string;
  readonly headers: IncomingHttpHeaders;
  readonly echoed: EchoedRequest | undefined;
  readonly dnsName: string | undefined;
}

function capture(
  door: FrontDoor,
  {
    method = "GET",
    host = "127.0.0.1",
    path = "",
    isTls = false,
  }: { method?: string; host?: string; path?: string; isTls?: boolean },
): Promise<Captured> {
  return new Promise((resolve, reject) => {
    const send = isTls ? httpsRequest : httpRequest;
    const request = send({
      agent: false,
      host: "127.0.0.1",
      port: isTls ? door.httpsPort : door.httpPort,
      method,
      path: `/${path.replace(/^\//, "")}`,
      headers: { Host: host, "User-Agent": "Go-http-client/1.1" },
      setHost: false,
      ...(isTls && { servername: host, rejectUnauthorized: false }),
    });
    request.on("error", reject);
    request.on("response", (response) => {
      const chunks: Buffer[] = [];
      const certificate = isTls ? (response.socket as TLSSocket).getPeerCertificate() : undefined;
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        resolve({
          status: response.statusCode ?? 0,
          proto: `HTTP/${response.httpVersion}`,
          headers: response.headers,
          echoed: text.startsWith("{") && response.statusCode === 200 ? JSON.parse(text) : undefined,
          dnsName: /DNS:([^,]+)/.exec(certificate?.subjectaltname ?? "")?.[1],
        });
      });
    });
    request.end();
  });
}

/** Resolves as soon as the Ingress is told to be served: by its address, as the suite waits, where there is an API to ask. */
async function doorWith(
  source: (typeof SOURCES)[number],
  services: readonly string[],
  objects: readonly object[],
  { ingress, portName }: { ingress: string; portName?: string },
): Promise<FrontDoor> {
  const door = await FrontDoor.start([], {}, {}, source);
  const endpoints = await Promise.all(
    services.map(async (service) =>
      serviceObjects(service, [await door.addPod(service)], portName === undefined ? {} : { portName }),
    ),
  );
  door.write([...endpoints.flat(), ...objects]);
  await served(door, ingress);
  return door;
}

async function served(door: FrontDoor, ingress: string): Promise<void> {
  if (!door.isLive) return door.serves(1);
  await eventually(`an address of ${ingress}`, () => door.publishedAddresses(ingress).length > 0, {
    intervalMs: 1,
  });
}

describe.each(SOURCES)("default_backend.feature, %s", (source) => {
  let door: FrontDoor;
  beforeAll(async () => {
    const ingress = ingressObject("default-backend", { defaultBackend: backend("echo-service") });
    door = await doorWith(source, ["echo-service"], [ingress], { ingress: "default-backend" });
  });
  afterAll(() => door.stop());

  it.each([
    ["GET", "my-host", ""],
    ["GET", "my-host", "sub-path"],
    ["POST", "some-host", ""],
    ["PUT", undefined, "resource"],
    ["DELETE", "some-host", "resource"],
    ["PATCH", "my-host", "resource"],
  ])("%s %s /%s", async (method, host, path) => {
    const captured = await capture(door, { method, path, ...(host !== undefined && { host }) });
    expect(captured.status).toBe(200);
    expect(captured.proto).toBe("HTTP/1.1");
    for (const name of ["content-length", "content-type", "date", "server"]) {
      expect(captured.headers, name).toHaveProperty(name);
    }
    expect(captured.echoed).toMatchObject({
      service: "echo-service",
      method,
      path: `/${path}`,
      proto: "HTTP/1.1",
      host: host ?? "127.0.0.1",
    });
    expect(captured.echoed?.headers["User-Agent"]).toEqual(["Go-http-client/1.1"]);
  });
});

describe.each(SOURCES)("host_rules.feature, %s", (source) => {
  let door: FrontDoor;
  beforeAll(async () => {
    const { cert, private: key } = await generate(
      [
        { name: "organizationName", value: "Acme Co" },
        { name: "commonName", value: "default" },
      ],
      {
        algorithm: "sha256",
        extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "foo.bar.com" }] }],
      },
    );
    const base64 = (text: string): string => Buffer.from(text).toString("base64");
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "conformance-tls", namespace: "default" },
      type: "kubernetes.io/tls",
      data: { "tls.crt": base64(cert), "tls.key": base64(key) },
    };
    const path = (service: string, port: number | string): object => ({
      http: { paths: [{ path: "/", pathType: "Prefix", backend: backend(service, port) }] },
    });
    const ingress = ingressObject("host-rules", {
      tls: [{ hosts: ["foo.bar.com"], secretName: "conformance-tls" }],
      rules: [
        { host: "*.foo.com", ...path("wildcard-foo-com", 8080) },
        { host: "foo.bar.com", ...path("foo-bar-com", "http") },
      ],
    });
    door = await doorWith(source, ["wildcard-foo-com", "foo-bar-com"], [secret, ingress], {
      ingress: "host-rules",
      portName: "http",
    });
  });
  afterAll(() => door.stop());

  it("https://foo.bar.com has the Secret's certificate and reaches its service", async () => {
    // A live Secret is asked for only when an Ingress names it.
    await expect
      .poll(async () => (await capture(door, { host: "foo.bar.com", isTls: true })).dnsName)
      .toBe("foo.bar.com");
    const captured = await capture(door, { host: "foo.bar.com", isTls: true });
    expect(captured.status).toBe(200);
    expect(captured.echoed).toMatchObject({ service: "foo-bar-com", host: "foo.bar.com" });
  });

  it("a name without a Secret gets the default certificate, which has a DNS name", async () => {
    expect((await capture(door, { host: "other.example.com", isTls: true })).dnsName).toBeDefined();
  });

  it.each([
    ["foo.bar.com", 200, "foo-bar-com"],
    ["subdomain.bar.com", 404, undefined],
    ["bar.foo.com", 200, "wildcard-foo-com"],
    ["baz.bar.foo.com", 404, undefined],
    ["foo.com", 404, undefined],
  ])("http://%s is answered %i by %s", async (host, status, service) => {
    const captured = await capture(door, { host });
    expect(captured.status).toBe(status);
    expect(captured.echoed?.service).toBe(service);
    if (service !== undefined) expect(captured.echoed?.host).toBe(host);
  });
});

describe.each(SOURCES)("ingress_class.feature, %s", (source) => {
  it("an Ingress of another class gets no route and no address", async () => {
    const foreign = ingressObject("test-ingress-class", {
      ingressClassName: "some-invalid-class-name",
      rules: [
        {
          host: "ingress-class",
          http: { paths: [{ path: "/", pathType: "Prefix", backend: backend("echo-service") }] },
        },
      ],
    });
    const ours = ingressObject("ours", {
      rules: [
        {
          host: "ours",
          http: { paths: [{ path: "/", pathType: "Prefix", backend: backend("echo-service") }] },
        },
      ],
    });
    const door = await doorWith(source, ["echo-service"], [foreign, ours], { ingress: "ours" });
    try {
      expect((await capture(door, { host: "ours" })).status).toBe(200);
      expect((await capture(door, { host: "ingress-class" })).status).toBe(404);
      expect(door.publishedAddresses("test-ingress-class")).toEqual([]);
    } finally {
      await door.stop();
    }
  });
});

describe.each(SOURCES)("load_balancing.feature, %s", (source) => {
  it("100 requests reach all of 10 pods", async () => {
    const door = await FrontDoor.start([], {}, {}, source);
    try {
      const pods = await Promise.all(
        Array.from({ length: 10 }, (_, index) => door.addPod("echo-service", `echo-${index}`)),
      );
      door.write([
        ...serviceObjects("echo-service", pods),
        ingressObject("load-balancing", { defaultBackend: backend("echo-service") }),
      ]);
      await expect.poll(async () => (await capture(door, { host: "load-balancing" })).status).toBe(200);
      const seen = new Set<string | undefined>();
      for (let index = 0; index < 100; index++) {
        const captured = await capture(door, { host: "load-balancing" });
        expect(captured.status).toBe(200);
        seen.add(captured.echoed?.pod);
      }
      expect(seen.size).toBe(10);
    } finally {
      await door.stop();
    }
  });
});

describe.each(SOURCES)("path_rules.feature, %s", (source) => {
  let door: FrontDoor;
  const rules: [string, [string, string, string][]][] = [
    ["exact-path-rules", [["Exact", "/foo", "foo-exact"]]],
    [
      "prefix-path-rules",
      [
        ["Prefix", "/foo", "foo-prefix"],
        ["Prefix", "/aaa/bbb", "aaa-slash-bbb-prefix"],
        ["Prefix", "/aaa", "aaa-prefix"],
      ],
    ],
    [
      "mixed-path-rules",
      [
        ["Prefix", "/foo", "foo-prefix"],
        ["Exact", "/foo", "foo-exact"],
      ],
    ],
    [
      "trailing-slash-path-rules",
      [
        ["Prefix", "/aaa/bbb/", "aaa-slash-bbb-slash-prefix"],
        ["Exact", "/foo/", "foo-slash-exact"],
      ],
    ],
  ];
  beforeAll(async () => {
    const ingress = ingressObject("path-rules", {
      rules: rules.map(([host, paths]) => ({
        host,
        http: {
          paths: paths.map(([pathType, path, service]) => ({ path, pathType, backend: backend(service) })),
        },
      })),
    });
    const services = [...new Set(rules.flatMap(([, paths]) => paths.map(([, , service]) => service)))];
    door = await doorWith(source, services, [ingress], { ingress: "path-rules" });
  });
  afterAll(() => door.stop());

  it.each([
    ["exact-path-rules", "foo", "foo-exact"],
    ["exact-path-rules", "foo/", undefined],
    ["exact-path-rules", "FOO", undefined],
    ["exact-path-rules", "bar", undefined],
    ["prefix-path-rules", "foo", "foo-prefix"],
    ["prefix-path-rules", "foo/", "foo-prefix"],
    ["prefix-path-rules", "FOO", undefined],
    ["prefix-path-rules", "aaa/bbb", "aaa-slash-bbb-prefix"],
    ["prefix-path-rules", "aaa/bbb/ccc", "aaa-slash-bbb-prefix"],
    ["prefix-path-rules", "aaa/ccc", "aaa-prefix"],
    ["prefix-path-rules", "aaaccc", undefined],
    ["prefix-path-rules", "foo/", "foo-prefix"],
    ["mixed-path-rules", "foo", "foo-exact"],
    ["trailing-slash-path-rules", "aaa/bbb", "aaa-slash-bbb-slash-prefix"],
    ["trailing-slash-path-rules", "aaa/bbb/", "aaa-slash-bbb-slash-prefix"],
    ["trailing-slash-path-rules", "foo", undefined],
  ])("http://%s/%s reaches %s", async (host, path, service) => {
    const captured = await capture(door, { host, path });
    expect(captured.status).toBe(service === undefined ? 404 : 200);
    expect(captured.echoed?.service).toBe(service);
  });
});
