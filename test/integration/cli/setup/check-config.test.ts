import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { generate } from "selfsigned";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { UsageError } from "../../../../src/cli/command.ts";
import { runCommand } from "../../../../src/cli/command-line.ts";
import { issueCertificate } from "../../../support/test-certificates.ts";

let folder = "";
let out = "";
let err = "";

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "sluice-check-config-"));
  [out, err] = ["", ""];
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    out += text;
    return true;
  });
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    err += text;
    return true;
  });
});

afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

function file(name: string, text: string): string {
  const location = path.join(folder, name);
  writeFileSync(location, text);
  return location;
}

const podWithProbe = (probe: string) => `apiVersion: v1
kind: Pod
metadata: { name: web }
spec:
  containers:
    - name: main
      image: web:1
      livenessProbe:
        ${probe}
`;

const kubeconfig = (cluster: string, user: string) =>
  `current-context: x\ncontexts: [{name: x, context: {cluster: x, user: x}}]\nclusters: [{name: x, cluster: {server: "https://a"${cluster}}}]\nusers: [{name: x, user: {${user}}}]\n`;
const PEERS =
  "  peers: {addresses: ['a:1'], sessionKeyFile: named, tls: {certFile: a.crt, keyFile: a.key, name: a, certificateAuthorityFile: a.crt}}";
const STORE = "endpoint: 'https://a', bucket: bucket";

/** Files that the start refuses, each as `named`. */
const BAD_FILES: Readonly<Record<string, { yaml: string; text: string; words: RegExp }>> = {
  "a row of static tokens": {
    yaml: "authentication: {tokenAuthFile: named}\nauthorization: {mode: [AlwaysAllow]}",
    text: "right,jane,1\nsecret,jane\nright,joe,2\n",
    words: /^\/named:2: token file must have at least 3 columns .*\n\/named:3: duplicate token/,
  },
  "the node's static tokens": {
    yaml: "listeners:\n  kubelet: {authentication: {tokenAuthFile: named}, authorization: {mode: [AlwaysAllow]}, runtime: {endpoint: 'unix:///a', nodeName: n}}",
    text: 'a"b,jane,1\n',
    words: /^\/named:1: record on line 1: bare " in non-quoted field/,
  },
  "session keys": {
    yaml: `listeners:\n  apiServer: {}\n${PEERS}`,
    text: "short\n",
    words: /sessionKeyFile: key 1 must have at least 32 characters/,
  },
  "a signing key": {
    yaml: "recording: {folder: recordings, signingKeyFile: named}",
    text: "secret\n",
    words: /signingKeyFile: is not an Ed25519 private key/,
  },
  "the authorities of a recording's store": {
    yaml: `recording: {folder: recordings, s3: {${STORE}, caFile: named}}`,
    text: "junk\n",
    words: /caFile: \/named has no certificate in PEM/,
  },
  "an empty file of manifests": {
    yaml: "cluster: {manifests: [named]}",
    text: "",
    words: /^\/named:1: the file holds no object\n$/,
  },
  "a manifest": {
    yaml: "cluster: {manifests: [named]}",
    text: "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {}\n",
    words: /^\/named:4: Pod "web" is invalid: spec.containers: Required value\n$/,
  },
  "an audit policy": {
    yaml: "audit: {policyFile: named, log: {path: audit.log}}",
    text: "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Nope}]\n",
    words: /^\/named:3:10: rules\[0\].level: "Nope" is not supported/,
  },
  "a key that OpenSSL finds too small": {
    yaml: "listeners:\n  apiServer: {tls: {certFile: small.crt, keyFile: small.key}}",
    text: "",
    words: /keyFile: OpenSSL refuses the key in \/small.key with its certificate: .*key too small/,
  },
  "a kubeconfig without its context": {
    yaml: "cluster: {kubeconfig: named, context: other}",
    text: kubeconfig("", ""),
    words: /kubeconfig: context "other" does not exist/,
  },
  "a kubeconfig whose authorities are missing": {
    yaml: "cluster: {kubeconfig: named}",
    text: kubeconfig(", certificate-authority: missing", ""),
    words: /kubeconfig: open \/missing: no such file or directory/,
  },
  "a kubeconfig whose authorities are none": {
    yaml: "cluster: {kubeconfig: named}",
    text: kubeconfig(", certificate-authority: a.key", ""),
    words: /kubeconfig: tls: failed to find certificate PEM data/,
  },
  "a kubeconfig whose key is another's": {
    yaml: "cluster: {kubeconfig: named}",
    text: kubeconfig("", "client-certificate: a.crt, client-key: b.key"),
    words: /kubeconfig: tls: private key does not match public key/,
  },
};

async function pairIn(place: string): Promise<void> {
  const small = await generate([{ name: "commonName", value: "a" }], { keySize: 512, algorithm: "sha256" });
  writeFileSync(path.join(place, "small.crt"), small.cert);
  writeFileSync(path.join(place, "small.key"), small.private);
  for (const name of ["a", "b"]) {
    const { cert, key } = await issueCertificate({ commonName: name });
    writeFileSync(path.join(place, `${name}.crt`), cert);
    writeFileSync(path.join(place, `${name}.key`), key);
  }
}

/** Why a start from this configuration is refused. It ends before a port is opened. */
async function startOf(configuration: string): Promise<string> {
  const before = SIGNALS.map((signal) => process.listeners(signal));
  const refusal = await runCommand("serve", ["--config", configuration]).then(
    () => "it started",
    (error: Error) => error.message,
  );
  // A process whose start is refused ends, and this one does not.
  for (const [index, signal] of SIGNALS.entries())
    for (const listener of process.listeners(signal))
      if (!before[index]?.includes(listener)) process.off(signal, listener);
  return refusal;
}

const SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR2"] as const;

describe("sluice check-config of a session policy", () => {
  const configuration = (rule: string) =>
    file(
      "gateway.yaml",
      `apiVersion: sluice.dev/v1alpha1\nkind: GatewayConfiguration\nkubelet: { scheme: http }\npolicy:\n  rules:\n    - ${rule}\n`,
    );

  it("warns of a deny rule that another spelling walks round, and of programs that are allowed by name alone", async () => {
    const denies = configuration("{ name: no-shells, match: { command: [{ prefix: [sh] }] }, action: deny }");
    expect(await runCommand("check-config", ["-f", denies])).toBe(0);
    expect(err).toBe(
      `Warning: ${denies}: policy.rules[0] (no-shells) refuses ["sh"], and ["/bin/sh"], ["/usr/bin/sh"], ["bash"] is allowed: allow what is needed and deny the rest (docs/policy.md)\n`,
    );
    err = "";
    const allows = configuration("{ name: look, match: { command: [{ programs: [ls] }] }, action: allow }");
    expect(await runCommand("check-config", ["-f", allows])).toBe(0);
    expect(err).toContain("policy.rules[0] (look) allows programs by their base name");
  });

  it("warns of kubelets that are not verified, and of tokens in clear", async () => {
    const open = file(
      "gateway.yaml",
      `apiVersion: sluice.dev/v1alpha1
kind: GatewayConfiguration
listeners: { apiServer: { address: 0.0.0.0 } }
authentication: { tokenReview: { url: "https://127.0.0.1:1" } }
authorization: { mode: [RBAC] }
`,
    );
    expect(await runCommand("check-config", ["-f", open])).toBe(0);
    expect(err.split("\n").map((line) => line.split(":").slice(0, 3).join(":"))).toEqual([
      `Warning: ${open}: kubelet.certificateAuthorityFile is absent`,
      `Warning: ${open}: listeners.apiServer has no tls and listens at 0.0.0.0, beyond loopback`,
      "",
    ]);
  });

  it("has nothing to say of one that denies all", async () => {
    const closed = configuration("{ name: closed, match: { subresources: [exec] }, action: deny }");
    expect(await runCommand("check-config", ["-f", closed])).toBe(0);
    expect(err).toBe("");
  });
});

describe("sluice check-config of a configuration", () => {
  const text = `apiVersion: sluice.dev/v1alpha1
kind: GatewayConfiguration
cluster: { manifests: [not-there.yaml] }
`;

  it("takes a file alone, with -f and with --config, and all of them together", async () => {
    const pod = file("pod.yaml", podWithProbe("{ tcpSocket: { port: 80 } }"));
    for (const args of [[pod], ["-f", pod], ["--config", pod]]) {
      out = "";
      expect(await runCommand("check-config", args)).toBe(0);
      expect(out).toBe(`${pod}: 1 valid object\n`);
    }
    out = "";
    expect(await runCommand("check-config", [pod, "--config", pod, "-f", pod])).toBe(0);
    expect(out.split("\n")).toHaveLength(4);
  });

  it("takes a folder that holds configurations beside manifests, and says every problem of each", async () => {
    const kind = { apiVersion: "sluice.dev/v1alpha1", kind: "GatewayConfiguration" };
    const json = file("b-gateway.json", JSON.stringify({ ...kind, cluster: { manifests: ["pod.yaml"] } }));
    const yaml = file("a-gateway.yaml", "apiVersion: sluice.dev/v1alpha1\nkind: GatewayConfiguration\n");
    file("pod.yaml", podWithProbe("{ tcpSocket: { port: 80 } }"));
    const embedded =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: c }\ndata:\n  g: |\n    kind: GatewayConfiguration\n";
    file("map.yaml", embedded);
    expect(await runCommand("check-config", [folder])).toBe(0);
    expect(out).toContain(`${yaml}: a valid GatewayConfiguration, with 0 objects in its manifests\n`);
    expect(out).toContain(`${json}: a valid GatewayConfiguration, with 1 objects in its manifests\n`);
    expect(out).toContain(`${folder}: 1 valid object\n`);
    out = "";
    file("b-gateway.json", JSON.stringify({ ...kind, clustr: {} }));
    file("pod.yaml", podWithProbe("{ tcpSocket: { port: 70000 } }"));
    expect(await runCommand("check-config", [folder])).toBe(2);
    expect(out).toBe(`${yaml}: a valid GatewayConfiguration, with 0 objects in its manifests\n`);
    expect(err).toContain("clustr");
    expect(err).toContain("70000");
  });

  it("--syntax reads no file that it names", async () => {
    const named = file("gateway.yaml", text);
    expect(await runCommand("check-config", [named])).toBe(2);
    expect(await runCommand("check-config", ["--syntax", named])).toBe(0);
    expect(out).toBe(`${named}: a valid GatewayConfiguration; the files that it names were not read\n`);
    const wrong = file("wrong.yaml", `${text}clustr: {}\n`);
    expect(await runCommand("check-config", ["--syntax", wrong])).toBe(2);
  });
});

describe("sluice check-config", () => {
  it("accepts a pod with a probe", async () => {
    const pod = file("pod.yaml", podWithProbe("httpGet: { port: http, path: /healthz }"));
    expect(await runCommand("check-config", ["-f", pod])).toBe(0);
    expect([out, err]).toEqual([`${pod}: 1 valid object\n`, ""]);
  });

  it("refuses a bad probe in the API server's words, with its line", async () => {
    const pod = file("pod.yaml", podWithProbe("grpc: { port: 0 }"));
    expect(await runCommand("check-config", ["-f", pod])).toBe(2);
    expect(err).toBe(
      `${pod}:9: Pod "web" is invalid: spec.containers[0].livenessProbe.grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive\n`,
    );
  });

  it("judges by the gates of --feature-gates", async () => {
    const pod = file("pod.yaml", podWithProbe("httpGet: { port: 80, protocol: HTTP2, scheme: HTTPS }"));
    expect(await runCommand("check-config", ["-f", pod])).toBe(0);
    expect(err).toBe(
      `Warning: ${pod}:1: spec.containers[0].livenessProbe.httpGet.protocol is dropped: its feature gate is off\n`,
    );
    expect(await runCommand("check-config", ["-f", pod, "--feature-gates", "H2CContainerProbe=true"])).toBe(
      2,
    );
    expect(err).toContain(
      'livenessProbe.httpGet.protocol: Invalid value: "HTTP2": HTTP2 cannot be combined with scheme HTTPS',
    );
    await expect(runCommand("check-config", ["-f", pod, "--feature-gates", "Nope=true"])).rejects.toThrow(
      new UsageError("unrecognized feature gate: Nope"),
    );
  });

  it("judges the manifests of a configuration by the configuration's gates", async () => {
    file("pod.yaml", podWithProbe("grpc: { port: 80, mode: Verify }"));
    const configuration = (gate: boolean) =>
      file(
        "gateway.yaml",
        `apiVersion: sluice.dev/v1alpha1
kind: GatewayConfiguration
cluster: { manifests: [pod.yaml] }
featureGates: { GRPCContainerProbeTLS: ${gate} }
listeners: { apiServer: { port: 0 } }
`,
      );
    expect(await runCommand("check-config", ["-f", configuration(false)])).toBe(0);
    expect(err).toContain("grpc.mode is dropped: its feature gate is off");
    expect(await runCommand("check-config", ["-f", configuration(true)])).toBe(2);
    expect(err).toContain('grpc.mode: Unsupported value: "Verify": supported values: "Plaintext", "TLS"');
  });

  it("refuses a configuration whose files are missing", async () => {
    const configuration = file(
      "gateway.yaml",
      `apiVersion: sluice.dev/v1alpha1
kind: GatewayConfiguration
cluster:
  kubeconfig: missing.conf
`,
    );
    expect(await runCommand("check-config", ["-f", configuration])).toBe(2);
    const missing = path.join(folder, "missing.conf");
    expect(err).toBe(`${configuration}:4:3: cluster.kubeconfig: ${missing}: no such file or directory\n`);
  });

  it.each(Object.entries(BAD_FILES))("refuses %s in the words of serve", async (_, { yaml, text, words }) => {
    await pairIn(folder);
    file("named", text);
    const configuration = file(
      "gateway.yaml",
      `apiVersion: sluice.dev/v1alpha1\nkind: GatewayConfiguration\nkubelet: {scheme: http}\n${yaml}\n`,
    );
    const refusal = await startOf(configuration);
    expect(await runCommand("check-config", ["-f", configuration])).toBe(2);
    expect(err.replaceAll(folder, "")).toMatch(words);
    expect(refusal.split("\n").sort()).toEqual(
      err
        .split("\n")
        .filter((line) => !line.startsWith("Warning: ") && line !== "")
        .sort(),
    );
    err = "";
    expect(await runCommand("check-config", ["-f", configuration, "--syntax"])).toBe(0);
    expect(err).toBe("");
  });

  it("accepts a good Ingress, warns of an old one, and refuses a bad one at each line", async () => {
    const ingress = (metadata: string, path: string) => `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: web${metadata} }
spec:
  rules:
    - host: web.example.com
      http:
        paths:
          - path: ${path}
            pathType: Prefix
            backend: { service: { name: web, port: { number: 80 } } }
`;
    const good = file("good.yaml", ingress("", "/"));
    expect([await runCommand("check-config", ["-f", good]), out, err]).toEqual([
      0,
      `${good}: 1 valid object\n`,
      "",
    ]);
    const old = file("old.yaml", ingress(', annotations: { kubernetes.io/ingress.class: "x" }', "/"));
    expect(await runCommand("check-config", ["-f", old])).toBe(0);
    expect(err).toBe(
      `Warning: ${old}:1: annotation "kubernetes.io/ingress.class" is deprecated, please use 'spec.ingressClassName' instead\n`,
    );
    const bad = file("bad.yaml", ingress("", "a//b"));
    err = "";
    expect(await runCommand("check-config", ["-f", bad])).toBe(2);
    const at = `${bad}:9: Ingress.networking.k8s.io "web" is invalid: spec.rules[0].http.paths[0].path: Invalid value: "a//b"`;
    expect(err).toBe(`${at}: must be an absolute path\n${at}: must not contain '//'\n`);
  });

  it("reports unknown fields as strict field validation does, with the name that was meant", async () => {
    const pod = file("pod.yaml", podWithProbe("{ httpget: { port: 80 }, periodSecond: 5 }"));
    expect(await runCommand("check-config", ["-f", pod])).toBe(2);
    const refused = `${pod}:9: Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field`;
    expect(err).toBe(
      `${refused} "spec.containers[0].livenessProbe.httpget"; did you mean "httpGet"?\n` +
        `${refused} "spec.containers[0].livenessProbe.periodSecond"; did you mean "periodSeconds"?\n`,
    );
  });

  it("knows the fields that Sluice does not read, and those of older versions", async () => {
    const pod = file(
      "pod.yaml",
      `apiVersion: v1
kind: Pod
metadata: { name: web, ownerReferences: [{ apiVersion: v1, kind: Node, name: node, uid: u }] }
spec:
  volumes: [{ name: v, projected: { sources: [{ serviceAccountToken: { path: t } }] } }]
  containers:
    - { name: main, image: i, resources: { limits: { cpu: 1 } }, env: [{ name: A, value: b }] }
---
apiVersion: networking.k8s.io/v1beta1
kind: Ingress
metadata: { name: web }
spec: { backend: { serviceName: web, servicePort: 80 } }
`,
    );
    expect([await runCommand("check-config", ["-f", pod]), err]).toEqual([
      0,
      "Pod: checked only for names and types: metadata.ownerReferences, spec.volumes, spec.containers[].resources, spec.containers[].env\n",
    ]);
  });

  it("checks types of fields that Sluice does not read, with their lines", async () => {
    const pod = file("pod.yaml", `${podWithProbe("httpGet: { port: 80 }")}      args: serve\n`);
    expect(await runCommand("check-config", ["-f", pod])).toBe(2);
    expect(err).toBe(
      `${pod}:10: Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field Container.spec.containers.args of type []string\n`,
    );
  });

  it("lists fields whose rules it does not have, once for each kind", async () => {
    const pod = podWithProbe("httpGet: { port: 80 }");
    const two = `${pod}      args: [serve]\n  volumes: [{ name: a, emptyDir: {} }]\n---\n${pod.replace("web", "b")}      args: [b]\n`;
    expect(await runCommand("check-config", ["-f", file("two.yaml", two)])).toBe(0);
    expect(err).toBe("Pod: checked only for names and types: spec.containers[].args, spec.volumes\n");
  });

  it("takes the namespace of a cluster-scoped object away, as the API server does", async () => {
    const named = "metadata: { name: x, namespace: z }";
    const manifest = file("class.yaml", `apiVersion: v1\nkind: Namespace\n${named}\n`);
    expect([await runCommand("check-config", ["-f", manifest]), err]).toEqual([0, ""]);
  });

  it("reads a manifest's words as kubectl does, by YAML 1.1", async () => {
    const service = (name: string, selector: string, port: string) =>
      file(
        name,
        `apiVersion: v1
kind: Service
metadata: { name: web }
spec:
  selector: { app: ${selector} }
  ports: [{ port: ${port} }]
`,
      );
    expect([await runCommand("check-config", ["-f", service("a.yaml", "x", "0120")]), err]).toEqual([0, ""]);
    const manifest = service("b.yaml", "yes", "0120000000");
    expect(await runCommand("check-config", ["-f", manifest])).toBe(2);
    expect(err).toContain(`${manifest}:5: Service in version "v1" cannot be handled as a Service: `);
    expect(err).toContain("bool");
    err = "";
    const octal = service("c.yaml", "x", "0300000");
    expect(await runCommand("check-config", ["-f", octal])).toBe(2);
    expect(err).toContain("Invalid value: 98304");
  });

  it("passes over kinds that are not used here, with a line", async () => {
    const text =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: c }\n---\napiVersion: v1\nkind: Namespace\nmetadata: { name: n1 }\n";
    const manifest = file("mixed.yaml", text);
    expect(await runCommand("check-config", ["-f", manifest])).toBe(0);
    expect(err).toBe(`${manifest}: passed over, as not used here: ConfigMap\n`);
  });

  it("says of a generated name that a file cannot have one", async () => {
    const manifest = file(
      "generated.yaml",
      "apiVersion: v1\nkind: Namespace\nmetadata: { generateName: n- }\n",
    );
    expect(await runCommand("check-config", ["-f", manifest])).toBe(2);
    expect(err).toContain(
      "metadata.name: Required value: a file must say it: kubectl apply cannot use generateName",
    );
  });

  it("warns of Ingresses that will not be served as written", async () => {
    const ingress = (
      name: string,
      className: string,
      annotations: string,
      path: string,
      pathType: string,
    ) => `---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: ${name}, annotations: { ${annotations} } }
spec:
  ingressClassName: ${className}
  rules: [{ http: { paths: [{ path: '${path}', pathType: ${pathType}, backend: { service: { name: a, port: { number: 80 } } } }] } }]
`;
    const classOf = (name: string, controller: string) =>
      `---\napiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: { name: ${name} }\nspec: { controller: ${controller} }\n`;
    const rewrite = 'nginx.ingress.kubernetes.io/rewrite-target: "/$2"';
    const manifest = file(
      "ingresses.yaml",
      [
        classOf("edge", "sluice.dev/ingress-controller"),
        classOf("other", "example.com/controller"),
        ingress("mine", "edge", "a: b", "/a", "Prefix"),
        ingress("named", "nginx", "a: b", "/a", "Prefix"),
        ingress("theirs", "other", "a: b", "/a", "Prefix"),
        ingress("rewritten", "edge", rewrite, "/a(/|$)(.*)", "ImplementationSpecific"),
        ingress("matched", "edge", rewrite, "/a/[0-9]+", "ImplementationSpecific"),
        ingress("other-group", "edge", rewrite, "/a/(.*)", "ImplementationSpecific"),
        ingress("own", "edge", 'sluice.dev/rewrite-prefix: "b"', "/a", "Prefix"),
        ingress("sticky", "edge", "nginx.ingress.kubernetes.io/affinity: cookie", "/a", "Prefix"),
        ingress("by-address", "edge", "nginx.ingress.kubernetes.io/affinity: ip", "/a", "Prefix"),
        ingress("limited", "edge", 'nginx.ingress.kubernetes.io/limit-rps: "5"', "/a", "Prefix"),
      ].join(""),
    );
    expect(await runCommand("check-config", ["-f", manifest])).toBe(0);
    const lines = err.split("\n").filter((line) => line !== "");
    expect(lines).toEqual([
      expect.stringMatching(/^Warning: Ingress default\/named: class "nginx" is another controller's/),
      expect.stringMatching(/^Warning: Ingress default\/theirs: class "other" is another controller's/),
      'Warning: Ingress default/matched: path "/a/[0-9]+" looks like a regular expression and is matched literally, as a prefix',
      'Warning: Ingress default/other-group: $2 of nginx.ingress.kubernetes.io/rewrite-target is not what is behind "/a": requests keep their paths',
      'Warning: Ingress default/own: annotation sluice.dev/rewrite-prefix must be an absolute path without query, got "b"',
      'Warning: Ingress default/by-address: annotation nginx.ingress.kubernetes.io/affinity must be "cookie", got "ip"',
      "Warning: Ingress default/limited: annotations of other controllers have no effect here: nginx.ingress.kubernetes.io/limit-rps",
    ]);
  });

  it("refuses a folder and a file with nothing in them", async () => {
    expect(await runCommand("check-config", ["-f", folder])).toBe(2);
    const empty = file("empty.yaml", "# nothing\n---\n");
    expect(await runCommand("check-config", ["-f", empty])).toBe(2);
    expect(err).toBe(
      `${folder}: the folder holds no *.yaml, *.yml or *.json file\n${empty}:1: the file holds no object\n`,
    );
  });

  it("refuses two listeners on one port, and what is no address", async () => {
    const configuration = file(
      "gateway.yaml",
      `apiVersion: sluice.dev/v1alpha1
kind: GatewayConfiguration
listeners:
  apiServer: { address: 0.0.0.0, port: 8443 }
  ingress:
    httpsPort: 8443
    publishedAddresses: [10.0.0.256]
`,
    );
    expect(await runCommand("check-config", ["-f", configuration])).toBe(2);
    expect(err).toContain(
      `${configuration}:6:5: listeners.ingress.httpsPort: 8443 is the port of listeners.apiServer.port too\n`,
    );
    expect(err).toContain(
      `${configuration}:7:26: listeners.ingress.publishedAddresses[0]: must be an IP address`,
    );
  });

  it("judges an update where --old has the object", async () => {
    const pod = (image: string, nodeName: string) => `apiVersion: v1
kind: Pod
metadata: { name: web }
spec:
  nodeName: ${nodeName}
  containers: [{ name: main, image: "${image}" }]
`;
    const old = file("old.yaml", pod("web:1", "a"));
    expect([
      await runCommand("check-config", ["-f", file("new.yaml", pod("web:2", "a")), "--old", old]),
      err,
    ]).toEqual([0, ""]);
    const moved = file("moved.yaml", pod("web:1", "b"));
    expect(await runCommand("check-config", ["-f", moved])).toBe(0);
    expect(await runCommand("check-config", ["-f", moved, "--old", old])).toBe(2);
    expect(err).toContain(
      'Pod "web" is invalid: spec: Forbidden: pod updates may not change fields other than',
    );
  });
});
