import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { placedFields } from "../../../packages/client/src/config/field.ts";
import { parseYamlDocuments } from "../../../packages/client/src/config/yaml-documents.ts";
import { ClusterStore } from "../../../src/cluster/cluster-store.ts";
import { locate } from "../../../src/cluster/locate.ts";
import { parseManifests } from "../../../src/cluster/manifests.ts";
import {
  defaultConfiguration,
  gatewayConfiguration,
  parseConfiguration,
} from "../../../src/config/configuration.ts";

const root = new URL("../../../", import.meta.url);

describe("deploy/examples/gateway.yaml", () => {
  const { value } = documentOf("deploy/examples/gateway.yaml");
  const configuration = configurationOf("deploy/examples/gateway.yaml");
  it("names manifests that are beside it and valid", () => {
    const files = configuration.cluster.manifests;
    expect(files).toEqual([fileURLToPath(new URL("deploy/examples/cluster.yaml", root))]);
    const objects = parseManifests(files.map((name) => ({ name, text: readFileSync(name, "utf8") })));
    expect(objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      "Node worker-1",
      "Pod web",
      "Namespace default",
    ]);
  });

  const fields = Array.from(placedFields(gatewayConfiguration), ({ path, field }) => ({
    path: path.join("."),
    name: path.at(-1) ?? "",
    field,
    shown: path.reduce<unknown[]>(
      (holders, name) => holders.flatMap((holder) => memberOf(holder, name)),
      [value],
    ),
  }));

  it("shows every field, in force or in a comment", () => {
    const comments = new Set(textOf("deploy/examples/gateway.yaml").match(/(?<=#.*)\b\w+/g));
    // The fields of two sections of one kind are shown once.
    const kindOf = ({ name, field }: (typeof fields)[number]) => `${name}: ${field.sentence}`;
    const inForce = new Set(fields.filter(({ shown }) => shown.length > 0).map(kindOf));
    // Fields of Kubernetes that are refused are of type nothing.
    const usable = fields.filter(({ field }) => field.type !== "nothing");
    const missing = usable.filter((field) => !inForce.has(kindOf(field)) && !comments.has(field.name));
    expect(missing.map(({ path }) => path)).toEqual([]);
  });

  it("shows defaults, but in what is there for example", () => {
    const forExample = /^(?:authorization\.mode$|cluster\.manifests|policy\.rules|upstreamProbes\.nodes)\b/;
    const others = fields.filter(
      ({ path, field, shown }) =>
        field.default !== undefined &&
        field.table === undefined &&
        !forExample.test(path) &&
        shown.some((one) => !isDeepStrictEqual(one, field.default)),
    );
    expect(others.map(({ path }) => path)).toEqual([]);
    expect(configuration.featureGates.toString()).toBe(defaultConfiguration().featureGates.toString());
  });
});

describe("deploy/examples/rbac.yaml", () => {
  it("is what an API server takes", () => {
    const name = "deploy/examples/rbac.yaml";
    const objects = parseManifests([{ name, text: textOf(name) }]);
    expect(objects.map(({ kind }) => kind)).toContain("ClusterRoleBinding");
  });
});

describe("docker-compose.yml", () => {
  const compose = documentOf("docker-compose.yml").value as {
    services: Record<
      string,
      { command?: string[]; configs?: { source: string }[]; networks?: string[]; ports?: string[] }
    >;
    configs: Record<string, { file: string }>;
  };
  const configuration = configurationOf("deploy/docker/config.yaml");

  it("mounts files that exist", () => {
    const used = Object.values(compose.services).flatMap(({ configs }) =>
      (configs ?? []).map(({ source }) => source),
    );
    expect([...new Set(used)].sort()).toEqual(Object.keys(compose.configs).sort());
    for (const { file } of Object.values(compose.configs)) {
      expect(textOf(file)).not.toBe("");
    }
  });

  it("makes its credentials at the first start: none is in the repository", () => {
    const folder = "/var/lib/sluice";
    expect(configuration.authentication.tokenAuthFile).toBe(`${folder}/tokens.csv`);
    expect(textOf("deploy/examples/nginx.conf")).toContain(`ssl_certificate_key ${folder}/tls.key;`);
    const script = textOf("deploy/docker/make-credentials.mjs");
    for (const file of ["tls.crt", "tls.key", "tokens.csv", "kubeconfig"]) {
      expect(script).toContain(`join(folder, "${file}")`);
    }
    const [, module] = /from "@sluice\/client\/internal\/(\S+)"/.exec(script) ?? [];
    expect(textOf(`packages/client/src/${module}.ts`)).toContain(
      "export async function createSelfSignedCertificate(",
    );
  });

  it("publishes on loopback only, and nodes not at all", () => {
    const published = Object.values(compose.services).flatMap(({ ports }) => ports ?? []);
    expect(published.filter((port) => !port.startsWith("127.0.0.1:"))).toEqual([]);
    for (const name of ["node-spdy", "node-ws"]) {
      expect(compose.services[name]).toMatchObject({ networks: ["nodes"] });
      expect(compose.services[name]?.ports).toBeUndefined();
    }
  });

  it("leads the gateway to each node, at the port that it listens on", () => {
    const store = new ClusterStore();
    store.replaceAll(
      parseManifests([{ name: "cluster.yaml", text: textOf("deploy/docker/cluster.yaml") }]),
      new Date(0),
    );
    const { kubelet, listeners } = configuration;
    const options = {
      preferredAddressTypes: kubelet.preferredAddressTypes,
      defaultKubeletPort: kubelet.port,
    };
    for (const [pod, service, features] of [
      ["web", "node-spdy", []],
      ["web-ws", "node-ws", ["ExtendWebSocketsToKubelet"]],
    ] as const) {
      const { node } = locate(store, { subresource: "exec", namespace: "default", pod }, options);
      expect(node).toMatchObject({ name: service, host: service, port: 10_250, declaredFeatures: features });
      const command = compose.services[service]?.command ?? [];
      const flags = [
        "--name",
        service,
        "--address",
        "0.0.0.0",
        "--port",
        String(node.port),
        "--pod",
        `default/${pod}`,
      ];
      expect(command.slice(0, 9)).toEqual(["fake-node", ...flags]);
      expect(command.includes("--declare-websockets")).toBe(features.length > 0);
    }
    expect(textOf("deploy/examples/nginx.conf")).toContain(`server gateway:${listeners.apiServer?.port};`);
    expect(textOf("deploy/docker/prometheus.yml")).toContain(`"gateway:${listeners.admin.port}"`);
  });
});

/** Of each item of a list. */
function memberOf(value: unknown, name: string): unknown[] {
  return [value].flat().flatMap((item) => {
    const member = (item as Record<string, unknown> | null)?.[name];
    return member === undefined ? [] : [member];
  });
}

function textOf(path: string): string {
  return readFileSync(new URL(path, root), "utf8");
}

function documentOf(path: string) {
  const [document] = parseYamlDocuments(textOf(path), path);
  if (document === undefined) {
    throw new Error(`${path} is empty`);
  }
  return document;
}

function configurationOf(path: string) {
  return parseConfiguration(textOf(path), fileURLToPath(new URL(path, root)));
}
