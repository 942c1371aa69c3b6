import { afterEach, describe, expect, it } from "vitest";
import { FeatureGates } from "../../../../src/config/feature-gates.ts";
import { TestApiServer } from "../../../support/api-server/test-api-server.ts";

let server: TestApiServer | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});

interface Answer {
  readonly code: number;
  // biome-ignore lint/suspicious/noExplicitAny: any field of any answer.
  readonly body: Readonly<Record<string, any>>;
  readonly warning: string | null;
}

async function started(gates = ""): Promise<TestApiServer> {
  server = await TestApiServer.start({ gates: FeatureGates.parse(gates) });
  return server;
}

async function send(method: string, path: string, body?: object, type = "application/json"): Promise<Answer> {
  const response = await fetch(`${server?.url}${path}`, {
    method,
    headers: { "Content-Type": type },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as Answer["body"];
  return { code: response.status, body: answer, warning: response.headers.get("warning") };
}

interface WatchEvent {
  readonly type: string;
  readonly object: { readonly metadata: { readonly name: string }; readonly spec: object };
}

/** The first events of a watch. */
async function watched(path: string, count: number): Promise<WatchEvent[]> {
  const leaving = new AbortController();
  const { body } = await fetch(`${server?.url}${path}`, { signal: leaving.signal });
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  const events = (text: string) => text.split("\n").slice(0, -1);
  let text = "";
  while (events(text).length < count) {
    const { value, done } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  leaving.abort();
  return events(text).map((line) => JSON.parse(line) as WatchEvent);
}

const pods = "/api/v1/namespaces/default/pods";
const podWith = (probe: object, name = "web") => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name },
  spec: { containers: [{ name: "main", image: "web:1", livenessProbe: probe }] },
});
const h2c = { httpGet: { port: 80, protocol: "HTTP2" } };
const probeOf = ({ body }: Answer) =>
  (body.spec as ReturnType<typeof podWith>["spec"]).containers[0]?.livenessProbe;

/** The integration tests that KEP-5999 lists. */
describe("KEP-5999 integration", () => {
  const completed = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };
  const stored = (protocol?: string) => ({
    httpGet: { port: 80, path: "/", scheme: "HTTP", ...(protocol && { protocol }) },
    ...completed,
  });

  it("create, gate on: the field is accepted and persisted", async () => {
    await started("H2CContainerProbe=true");
    expect((await send("POST", pods, podWith(h2c))).code).toBe(201);
    expect(probeOf(await send("GET", `${pods}/web`))).toEqual(stored("HTTP2"));
  });

  it("create, gate off: the field is dropped, the pod is created", async () => {
    await started();
    expect((await send("POST", pods, podWith(h2c))).code).toBe(201);
    expect(probeOf(await send("GET", `${pods}/web`))).toEqual(stored());
  });

  it.each([
    [{ scheme: "HTTPS" }, "scheme HTTPS"],
    [{ host: "example.com" }, "host"],
  ])("create with HTTP2 and %j: rejected", async (fields, what) => {
    await started("H2CContainerProbe=true");
    const answer = await send("POST", pods, podWith({ httpGet: { ...h2c.httpGet, ...fields } }));
    const field = "spec.containers[0].livenessProbe.httpGet.protocol";
    const message = `Invalid value: "HTTP2": HTTP2 cannot be combined with ${what}`;
    expect(answer).toMatchObject({
      code: 422,
      body: {
        kind: "Status",
        reason: "Invalid",
        message: `Pod "web" is invalid: ${field}: ${message}`,
        details: { name: "web", kind: "Pod", causes: [{ reason: "FieldValueInvalid", message, field }] },
      },
    });
  });

  it.each(["true", "false"])("update of an object that has it, gate %s: preserved", async (gate) => {
    const running = await started(`H2CContainerProbe=${gate}`);
    running.apply(podWith(stored("HTTP2")));
    const { body } = await send("GET", `${pods}/web`);
    const labelled = { ...body, metadata: { ...(body.metadata as object), labels: { a: "b" } } };
    expect((await send("PUT", `${pods}/web`, labelled)).code).toBe(200);
    expect(probeOf(await send("GET", `${pods}/web`))).toEqual(stored("HTTP2"));
  });

  it("templates of pods: dropped on create and on update, kept where it was in use", async () => {
    const running = await started();
    const deployments = "/apis/apps/v1/namespaces/default/deployments";
    const deployment = (name: string, probe: object) => ({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name },
      spec: {
        selector: { matchLabels: { a: "b" } },
        template: { metadata: { labels: { a: "b" } }, spec: podWith(probe).spec },
      },
    });
    const protocols = async (name: string) =>
      JSON.stringify((await send("GET", `${deployments}/${name}`)).body).includes("HTTP2");
    expect((await send("POST", deployments, deployment("new", h2c))).code).toBe(201);
    expect(await protocols("new")).toBe(false);
    running.apply(deployment("old", h2c));
    expect((await send("PUT", `${deployments}/old`, deployment("old", h2c))).code).toBe(200);
    expect(await protocols("old")).toBe(true);
    expect((await send("PUT", `${deployments}/new`, deployment("new", h2c))).code).toBe(200);
    expect(await protocols("new")).toBe(false);
  });
});

const ingresses = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
const classes = "/apis/networking.k8s.io/v1/ingressclasses";
const backend = { service: { name: "web", port: { number: 80 } } };
const ingressNamed = (name: string, spec: object = {}, metadata: object = {}) => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "Ingress",
  metadata: { name, ...metadata },
  spec: { defaultBackend: backend, ...spec },
});
const classNamed = (name: string, isDefault = false) => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "IngressClass",
  metadata: {
    name,
    ...(isDefault && { annotations: { "ingressclass.kubernetes.io/is-default-class": "true" } }),
  },
  spec: { controller: "example.com/controller" },
});

describe("Ingress API should support creating Ingress API operations", () => {
  it("create, get, list, patch, update, status, delete, deletecollection", async () => {
    await started();
    const created = await send("POST", ingresses, {
      ...ingressNamed("a"),
      status: { loadBalancer: { ingress: [{ ip: "1.2.3.4" }] } },
    });
    expect(created).toMatchObject({
      code: 201,
      body: { metadata: { generation: 1, namespace: "default" }, status: { loadBalancer: {} } },
    });
    expect(await send("GET", `${ingresses}/a`)).toMatchObject({ code: 200, body: created.body });
    await send("POST", ingresses, ingressNamed("b"));
    const names = async (path: string) =>
      ((await send("GET", path)).body.items as { metadata: { name: string } }[]).map(
        ({ metadata }) => metadata.name,
      );
    expect(await names(ingresses)).toEqual(["a", "b"]);
    expect(await names("/apis/networking.k8s.io/v1/ingresses")).toEqual(["a", "b"]);

    const merge = "application/merge-patch+json";
    const patched = await send("PATCH", `${ingresses}/a`, { metadata: { labels: { x: "y" } } }, merge);
    expect(patched).toMatchObject({ code: 200, body: { metadata: { generation: 1, labels: { x: "y" } } } });
    const next = { ...patched.body, spec: { defaultBackend: backend, ingressClassName: "c" } };
    const updated = await send("PUT", `${ingresses}/a`, next);
    expect(updated).toMatchObject({ code: 200, body: { metadata: { generation: 2 } } });
    expect(await send("PUT", `${ingresses}/a`, next)).toMatchObject({
      code: 409,
      body: { reason: "Conflict" },
    });
    expect((await send("PUT", `${ingresses}/missing`, ingressNamed("missing"))).code).toBe(404);

    const status = { loadBalancer: { ingress: [{ ip: "10.0.0.1" }] } };
    const written = await send(
      "PATCH",
      `${ingresses}/a/status`,
      { status, spec: { ingressClassName: "d" } },
      merge,
    );
    expect(written).toMatchObject({
      code: 200,
      body: { status, spec: { ingressClassName: "c" }, metadata: { generation: 2 } },
    });
    const other = { loadBalancer: { ingress: [{ hostname: "a.example.com" }] } };
    expect(await send("PUT", `${ingresses}/a/status`, { ...written.body, status: other })).toMatchObject({
      code: 200,
      body: { status: other },
    });
    const bad = { loadBalancer: { ingress: [{ ip: "nowhere" }] } };
    expect(await send("PATCH", `${ingresses}/a/status`, { status: bad }, merge)).toMatchObject({
      code: 422,
      body: {
        message:
          'Ingress.networking.k8s.io "a" is invalid: status.loadBalancer.ingress[0].ip: Invalid value: "nowhere": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      },
    });

    expect((await send("DELETE", `${ingresses}/a`)).code).toBe(200);
    expect((await send("DELETE", ingresses)).code).toBe(200);
    expect(await names(ingresses)).toEqual([]);
  });

  it("watch, from a version on, in each version of the API; delete with finalizers", async () => {
    await started();
    const metadata = { finalizers: ["example.com/last"] };
    const { body: first } = await send("POST", ingresses, ingressNamed("a", {}, metadata));
    await send("POST", ingresses, ingressNamed("b"));
    await send("DELETE", `${ingresses}/a`);
    expect(await send("GET", `${ingresses}/a`)).toMatchObject({
      code: 200,
      body: { metadata: { deletionTimestamp: expect.any(String) } },
    });
    const merge = "application/merge-patch+json";
    await send("PATCH", `${ingresses}/a`, { metadata: { finalizers: null } }, merge);
    const since = first.metadata.resourceVersion;
    for (const [path, field] of [
      [ingresses, "defaultBackend"],
      [ingresses.replace("/v1/", "/v1beta1/"), "backend"],
    ]) {
      const events = await watched(`${path}?watch=true&resourceVersion=${since}`, 3);
      expect(events.map(({ type, object }) => [type, object.metadata.name])).toEqual([
        ["ADDED", "b"],
        ["MODIFIED", "a"],
        ["DELETED", "a"],
      ]);
      expect(Object.keys(events[0]?.object.spec ?? {})).toEqual([field]);
    }
  });

  it("says all that is wrong, as one Status", async () => {
    await started();
    const spec = {
      rules: [{ host: "1.2.3.4", http: { paths: [{ path: "x", pathType: "Prefix", backend: {} }] } }],
    };
    const answer = await send("POST", ingresses, { ...ingressNamed("a"), spec });
    const [host, path, none] = [
      'spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address',
      'spec.rules[0].http.paths[0].path: Invalid value: "x": must be an absolute path',
      'spec.rules[0].http.paths[0].backend: Invalid value: "": resource or service backend is required',
    ];
    expect(answer).toMatchObject({
      code: 422,
      body: {
        message: `Ingress.networking.k8s.io "a" is invalid: [${host}, ${path}, ${none}]`,
        details: {
          name: "a",
          group: "networking.k8s.io",
          kind: "Ingress",
          causes: [host, path, none].map((text) => ({
            reason: "FieldValueInvalid",
            field: text?.split(": ")[0],
            message: text?.split(": ").slice(1).join(": "),
          })),
        },
      },
    });
  });

  it("warns of the annotation", async () => {
    await started();
    const annotations = { "kubernetes.io/ingress.class": "nginx" };
    const { code, warning } = await send("POST", ingresses, ingressNamed("a", {}, { annotations }));
    expect([code, warning]).toEqual([
      201,
      `299 - "annotation \\"kubernetes.io/ingress.class\\" is deprecated, please use 'spec.ingressClassName' instead"`,
    ]);
  });
});

describe("IngressClass API should support creating IngressClass API operations", () => {
  it("create, get, list, patch, update, delete, deletecollection; no status", async () => {
    await started();
    expect(await send("POST", classes, classNamed("a"))).toMatchObject({
      code: 201,
      body: { metadata: { generation: 1 } },
    });
    await send("POST", classes, classNamed("b"));
    expect(((await send("GET", classes)).body.items as unknown[]).length).toBe(2);
    const parameters = { kind: "Config", name: "x", scope: "Namespace", namespace: "default" };
    const merge = "application/merge-patch+json";
    expect(await send("PATCH", `${classes}/a`, { spec: { parameters } }, merge)).toMatchObject({
      code: 200,
      body: { metadata: { generation: 2 }, spec: { parameters } },
    });
    const { body } = await send("GET", `${classes}/a`);
    const other = { ...body, spec: { ...(body.spec as object), controller: "example.com/other" } };
    expect(await send("PUT", `${classes}/a`, other)).toMatchObject({
      code: 422,
      body: {
        message:
          'IngressClass.networking.k8s.io "a" is invalid: spec.controller: Invalid value: "example.com/other": field is immutable',
      },
    });
    expect((await send("PUT", `${classes}/a/status`, body)).code).toBe(404);
    expect((await send("DELETE", `${classes}/a`)).code).toBe(200);
    expect((await send("DELETE", classes)).code).toBe(200);
    expect(((await send("GET", classes)).body.items as unknown[]).length).toBe(0);
  });

  const classOf = async (name: string) =>
    ((await send("GET", `${ingresses}/${name}`)).body.spec as { ingressClassName?: string }).ingressClassName;

  it("should set default value on new IngressClass", async () => {
    await started();
    await send("POST", classes, classNamed("other"));
    await send("POST", classes, classNamed("chosen", true));
    await send("POST", ingresses, ingressNamed("a"));
    expect(await classOf("a")).toBe("chosen");
  });

  it("should not set default value if no default IngressClass", async () => {
    await started();
    await send("POST", classes, classNamed("other"));
    await send("POST", ingresses, ingressNamed("a"));
    expect(await classOf("a")).toBeUndefined();
  });

  it("should choose the one with the later CreationTimestamp, if equal the one with the lower name", async () => {
    const running = await started();
    const aged = (name: string, creationTimestamp: string) => {
      const { metadata, ...rest } = classNamed(name, true);
      running.apply({ ...rest, metadata });
      const stored = running.apply({ ...rest, metadata: { ...metadata, creationTimestamp } });
      expect(stored.metadata.creationTimestamp).toBe(creationTimestamp);
    };
    aged("b", "2026-01-01T00:00:00Z");
    aged("a", "2026-01-01T00:00:00Z");
    await send("POST", ingresses, ingressNamed("equal"));
    aged("c", "2026-01-02T00:00:00Z");
    await send("POST", ingresses, ingressNamed("later"));
    expect([await classOf("equal"), await classOf("later")]).toEqual(["a", "c"]);
  });

  it("an update never sets a class", async () => {
    const running = await started();
    running.apply(ingressNamed("a"));
    await send("POST", classes, classNamed("chosen", true));
    await send("PUT", `${ingresses}/a`, ingressNamed("a", {}, { labels: { a: "b" } }));
    expect(await classOf("a")).toBeUndefined();
  });
});

describe("networking.k8s.io/v1beta1", () => {
  const beta = ingresses.replace("/v1/", "/v1beta1/");
  const given = {
    apiVersion: "networking.k8s.io/v1beta1",
    kind: "Ingress",
    metadata: { name: "a" },
    spec: {
      rules: [{ http: { paths: [{ path: "/x", backend: { serviceName: "web", servicePort: "http" } }] } }],
    },
  };

  it("is written and read by conversion, patched in its own form", async () => {
    await started();
    const pathIn = async (path: string) => (await send("GET", path)).body;
    const created = await send("POST", beta, given);
    const pathType = "ImplementationSpecific";
    const inBeta = [{ path: "/x", pathType, backend: { serviceName: "web", servicePort: "http" } }];
    const inV1 = [{ path: "/x", pathType, backend: { service: { name: "web", port: { name: "http" } } } }];
    expect(created).toMatchObject({
      code: 201,
      body: { apiVersion: "networking.k8s.io/v1beta1", spec: { rules: [{ http: { paths: inBeta } }] } },
    });
    expect(await pathIn(`${ingresses}/a`)).toMatchObject({
      apiVersion: "networking.k8s.io/v1",
      spec: { rules: [{ http: { paths: inV1 } }] },
    });
    expect(await pathIn(`${beta}/a`)).toMatchObject({ spec: { rules: [{ http: { paths: inBeta } }] } });
    expect(await pathIn(beta)).toMatchObject({
      apiVersion: "networking.k8s.io/v1beta1",
      items: [{ spec: { rules: [{ http: { paths: inBeta } }] } }],
    });
    const merge = "application/merge-patch+json";
    const toDefault = { spec: { backend: { serviceName: "other", servicePort: 1 } } };
    await send("PATCH", `${beta}/a`, toDefault, merge);
    expect(await pathIn(`${ingresses}/a`)).toMatchObject({
      spec: { defaultBackend: { service: { name: "other", port: { number: 1 } } } },
    });
  });
});
