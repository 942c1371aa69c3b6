import { describe, expect, it } from "vitest";
import { StatusError } from "../../../packages/client/src/api/status.ts";
import type { Status } from "../../../packages/client/src/api/status-body.ts";
import type { Node, Pod } from "../../../src/api/objects.ts";
import { type LocateOptions, locate } from "../../../src/cluster/locate.ts";
import { defaultLocateOptions } from "../../support/locate-options.ts";

// The bound under test.
const MAX_PUBLISHED_FEATURES = 32;

const container = (name: string) => ({ name, image: "i" });
const pod = (spec: Partial<Pod["spec"]>): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", namespace: "default" },
  spec: { containers: [container("main")], nodeName: "worker", ...spec },
});
const node = (status: NonNullable<Node["status"]>): Node => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "worker" },
  status,
});
const internal = { type: "InternalIP", address: "10.0.0.1" };
const hostname = { type: "Hostname", address: "worker.test" };
const dialable = node({ addresses: [internal], daemonEndpoints: { kubeletEndpoint: { Port: 10_255 } } });

const target = (
  thePod: Pod | undefined,
  theNode: Node | undefined = dialable,
  request: Partial<Parameters<typeof locate>[1]> = {},
  options: LocateOptions = defaultLocateOptions,
) =>
  locate(
    {
      getPod: (namespace, name) => (namespace === "default" && name === "web" ? thePod : undefined),
      getNode: (name) => (name === "worker" ? theNode : undefined),
    },
    { subresource: "exec", namespace: "default", pod: "web", ...request },
    options,
  );

const failure = (code: number, message: string, more: Partial<Status> = {}): Status => ({
  kind: "Status",
  apiVersion: "v1",
  metadata: {},
  status: "Failure",
  message,
  code,
  ...more,
});
const bad = (message: string) => failure(400, message, { reason: "BadRequest" });
const missing = (kind: string, name: string) =>
  failure(404, `${kind} "${name}" not found`, { reason: "NotFound", details: { name, kind } });

const many = pod({
  initContainers: [container("setup")],
  containers: [container("a"), container("b")],
  ephemeralContainers: [container("debug")],
});

const refusals: readonly [what: string, find: () => unknown, status: Status][] = [
  ["no pod", () => target(undefined), missing("pods", "web")],
  [
    "a pod of another namespace",
    () => target(many, dialable, { namespace: "other" }),
    missing("pods", "web"),
  ],
  [
    "no container at all",
    () => target(pod({ containers: [] })),
    bad("a container name must be specified for pod web"),
  ],
  [
    "several containers",
    () => target(many),
    bad("a container name must be specified for pod web, choose one of: [setup a b debug]"),
  ],
  [
    "an empty name for several",
    () => target(many, dialable, { container: "" }),
    bad("a container name must be specified for pod web, choose one of: [setup a b debug]"),
  ],
  [
    "an unknown container",
    () => target(many, dialable, { container: "c" }),
    bad("container c is not valid for pod web"),
  ],
  [
    "an unknown container of an unplaced pod",
    () => target(pod({ nodeName: "" }), dialable, { container: "c" }),
    bad("container c is not valid for pod web"),
  ],
  ["an unplaced pod", () => target(pod({ nodeName: "" })), bad("pod web does not have a host assigned")],
  [
    "an unplaced pod, port-forward",
    () => target(pod({ nodeName: "", containers: [] }), dialable, { subresource: "portforward" }),
    bad("pod web does not have a host assigned"),
  ],
  ["no node", () => target(pod({ nodeName: "gone" })), missing("nodes", "gone")],
  [
    "no address",
    () => target(pod({}), node({})),
    failure(500, "no preferred addresses found; known addresses: []"),
  ],
  [
    "no preferred address",
    () =>
      target(
        pod({}),
        node({ addresses: [internal, hostname] }),
        {},
        { ...defaultLocateOptions, preferredAddressTypes: ["ExternalIP"] },
      ),
    failure(
      500,
      "no preferred addresses found; known addresses: [{InternalIP 10.0.0.1} {Hostname worker.test}]",
    ),
  ],
];

describe("locate refuses as kube-apiserver does", () => {
  it.each(refusals)("%s", (_, find, status) => {
    let thrown: unknown;
    try {
      find();
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(StatusError);
    expect((thrown as StatusError).status).toEqual(status);
  });
});

describe("locate", () => {
  it("takes the only container, and the port that the node reports", () => {
    expect(target(pod({ initContainers: [container("setup")] }))).toEqual({
      namespace: "default",
      pod: "web",
      container: "main",
      isEphemeral: false,
      node: {
        name: "worker",
        host: "10.0.0.1",
        port: 10_255,
        declaredFeatures: [],
        streaming: undefined,
        incarnation: expect.any(String),
      },
    });
  });

  it.each(["setup", "a", "b", "debug"])("finds the container %s, of whatever sort", (name) => {
    expect(target(many, dialable, { subresource: "attach", container: name }).container).toBe(name);
  });

  it("asks for no container to forward ports", () => {
    expect(target(many, dialable, { subresource: "portforward" }).container).toBeUndefined();
  });

  it("prefers types in their order, then addresses in theirs", () => {
    const second = { type: "InternalIP", address: "10.0.0.2" };
    const found = (types: string[]) =>
      target(
        pod({}),
        node({ addresses: [internal, second, hostname] }),
        {},
        { ...defaultLocateOptions, preferredAddressTypes: types },
      ).node.host;
    expect(found(["Hostname", "InternalIP"])).toBe("worker.test");
    expect(found(["ExternalIP", "InternalIP"])).toBe("10.0.0.1");
  });

  it("falls back to the default port and reads declared features", () => {
    const features = ["A", "ExtendWebSocketsToKubelet"];
    const found = target(
      pod({}),
      node({
        addresses: [internal],
        declaredFeatures: features,
        daemonEndpoints: { kubeletEndpoint: { Port: 0 } },
      }),
    );
    expect(found.node).toMatchObject({ port: 10_250, declaredFeatures: features });
  });

  it("reads the features that a Sluice in front of the kubelet has, up to a bound", () => {
    const withAnnotation = (text: string, declaredFeatures: string[] = ["K", "X"]) => {
      const worker = node({ addresses: [internal], declaredFeatures });
      const annotations = { "sluice.dev/published-features": text };
      return target(pod({}), { ...worker, metadata: { ...worker.metadata, annotations } }).node;
    };
    expect(withAnnotation("X,A").declaredFeatures).toEqual(["A", "K", "X"]);
    expect(withAnnotation("").declaredFeatures).toEqual(["K", "X"]);
    expect(withAnnotation("A").incarnation).not.toBe(withAnnotation("").incarnation);
    const names = Array.from({ length: MAX_PUBLISHED_FEATURES + 1 }, (_, index) => `F${index}`);
    const { declaredFeatures } = withAnnotation(names.join(), []);
    expect(declaredFeatures).toHaveLength(MAX_PUBLISHED_FEATURES);
    expect(declaredFeatures).not.toContain(names.at(-1));
  });

  it("reads what the annotation says, and knows another kubelet when one answers", () => {
    const worker = node({ addresses: [internal] });
    const annotated = {
      ...worker,
      metadata: { ...worker.metadata, annotations: { "sluice.dev/streaming": "spdy" } },
    };
    expect(target(pod({}), annotated).node.streaming).toBe("spdy");
    const incarnationOf = (status: object) =>
      target(pod({}), node({ addresses: [internal], ...status })).node.incarnation;
    const others = [
      { nodeInfo: { bootID: "2" } },
      { nodeInfo: { kubeletVersion: "2" } },
      { nodeInfo: { containerRuntimeVersion: "2" } },
      { declaredFeatures: ["A"] },
      { daemonEndpoints: { kubeletEndpoint: { Port: 2 } } },
    ].map(incarnationOf);
    expect(new Set([incarnationOf({}), ...others]).size).toBe(others.length + 1);
    expect(incarnationOf({ conditions: [] })).toBe(incarnationOf({}));
  });
});
