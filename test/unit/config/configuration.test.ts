import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { ConfigurationError } from "../../../packages/client/src/config/configuration-error.ts";
import { placedFields } from "../../../packages/client/src/config/field.ts";
import {
  defaultConfiguration,
  gatewayConfiguration,
  parseConfiguration,
} from "../../../src/config/configuration.ts";
import { DEFAULT_CIPHER_SUITES } from "../../../src/config/sections/tls-settings.ts";
import type { createLogger } from "../../../src/observability/logger.ts";
import { defaultLimits, defaultTimeouts } from "../../support/default-configuration.ts";

const NO_TRAFFIC =
  "f.yaml:4:1: listeners.apiServer: is required without kubelet and ingress: traffic needs a listener";
const HEADER = "apiVersion: sluice.dev/v1alpha1\nkind: GatewayConfiguration\n";

const WITH_A_LIVE_API = new Set([
  "forwardAs",
  "impersonation",
  "nameRequester",
  "admission",
  "maxStateAge",
  "podDeletionCost",
]);

describe("the configuration", () => {
  it("is complete when nothing is said", () => {
    const { featureGates, ...rest } = defaultConfiguration();
    expect(featureGates.isEnabled("ExtendWebSocketsToKubelet")).toBe(true);
    expect(rest).toEqual({
      listeners: {
        apiServer: { address: "127.0.0.1", port: 6443, tls: undefined, http2: true },
        admin: { address: "127.0.0.1", port: 8081, allowedHosts: [] },
        ingress: undefined,
      },
      cluster: { manifests: [] },
      authentication: {
        clientCAFile: undefined,
        refuseSystemMasters: false,
        requestHeader: undefined,
        tokenAuthFile: undefined,
        jwt: [],
        oidc: undefined,
        tokenReview: undefined,
        anonymous: { enabled: false },
      },
      authorization: { modes: ["AlwaysAllow"], webhook: undefined },
      policy: {
        rules: [],
        limits: { maxSessionsPerUser: undefined, maxSessionsPerNamespace: undefined },
      },
      audit: { policyFile: undefined, log: undefined, webhook: undefined, onFailure: "refuse" },
      edge: { allowedOrigins: [], trustedProxies: [] },
      upstreamAPIServer: undefined,
      kubelet: {
        scheme: "https",
        port: 10_250,
        preferredAddressTypes: ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"],
        certificateAuthorityFile: undefined,
        insecureSkipTLSVerify: true,
        clientCertificateFile: undefined,
        clientKeyFile: undefined,
        allowedAddresses: [],
        allowAPIServerEndpoints: false,
        streaming: {
          mode: "auto",
          nodes: new Map(),
          retryFailedPathMs: 60_000,
          maxRetryFailedPathMs: 1_800_000,
        },
        circuitBreaker: { failures: 3, retryMs: 5_000, maxRetryMs: 60_000 },
        egressProxy: undefined,
        spareConnections: 0,
        verifyNodeName: false,
      },
      limits: defaultLimits,
      timeouts: defaultTimeouts,
      resumption: {
        enabled: true,
        windowMs: 120_000,
        windowBytes: 1024 * 1024,
        maxSessions: 1_000,
        maxTotalBytes: 1024 * 1024 * 1024,
      },
      sessions: {
        reauthorizeIntervalMs: 30_000,
        credentialExpiry: "end",
        currentScreen: "keep",
        portForward: { connections: "shared" },
      },
      workers: 1,
      upstreamProbes: { nodes: undefined, gateways: undefined },
      podProbes: {
        nodeNames: [],
        threads: "auto",
        leaderElection: {
          leaderElect: true,
          leaseDurationMs: 15_000,
          renewDeadlineMs: 10_000,
          retryPeriodMs: 2_000,
        },
      },
      namedFiles: [],
      logging: { level: "info", format: "auto" },
    });
  });

  it("reads every field", () => {
    const configuration = parseConfiguration(
      `${HEADER}
listeners:
  apiServer: {address: 0.0.0.0, port: 0, tls: {certFile: pki/tls.crt, keyFile: /pki/tls.key}}
  admin: {address: "::1", port: 9999, allowedHosts: [ops.example.com]}
cluster: {manifests: [cluster.yaml, ../more]}
authentication: {tokenAuthFile: tokens.csv}
authorization: {mode: [AlwaysAllow]}
upstreamAPIServer:
  url: https://kubernetes.default.svc
  certificateAuthorityFile: ca.crt
  clientCertificateFile: client.crt
  clientKeyFile: client.key
  impersonation: constrained
kubelet:
  scheme: http
  port: 10255
  preferredAddressTypes: [InternalIP]
  certificateAuthorityFile: kubelet-ca.crt
featureGates: {PortForwardWebsockets: false}
limits:
  maxConcurrentSessions: 2k
  maxRequestHeaderBytes: 32Ki
  stalledPeerBufferBytes: 524288
  spdy: {maxStreams: 50}
timeouts: {idle: 10m, shutdownGracePeriod: 0s, webSocketPing: 5s}
logging: {level: debug}
`,
      "/etc/sluice/config.yaml",
    );
    expect(configuration.listeners.apiServer).toEqual({
      address: "0.0.0.0",
      port: 0,
      http2: true,
      tls: {
        certFile: "/etc/sluice/pki/tls.crt",
        keyFile: "/pki/tls.key",
        cipherSuites: DEFAULT_CIPHER_SUITES,
        minVersion: "VersionTLS12",
      },
    });
    expect(configuration.listeners.admin).toEqual({
      address: "::1",
      port: 9999,
      allowedHosts: ["ops.example.com"],
    });
    expect(configuration.cluster.manifests).toEqual(["/etc/sluice/cluster.yaml", "/etc/more"]);
    expect(configuration.authentication.tokenAuthFile).toBe("/etc/sluice/tokens.csv");
    expect(configuration.upstreamAPIServer).toEqual({
      url: "https://kubernetes.default.svc",
      certificateAuthorityFile: "/etc/sluice/ca.crt",
      insecureSkipTLSVerify: false,
      clientCertificateFile: "/etc/sluice/client.crt",
      clientKeyFile: "/etc/sluice/client.key",
      impersonation: "constrained",
      nameRequester: true,
    });
    expect(configuration.kubelet).toMatchObject({
      scheme: "http",
      port: 10_255,
      preferredAddressTypes: ["InternalIP"],
      // Given an authority, it is used.
      insecureSkipTLSVerify: false,
    });
    expect(configuration.featureGates.isEnabled("PortForwardWebsockets")).toBe(false);
    expect(configuration.limits).toEqual({
      ...defaultLimits,
      maxConcurrentSessions: 2_000,
      maxRequestHeaderBytes: 32_768,
      stalledPeerBufferBytes: 524_288,
      spdy: { ...defaultLimits.spdy, maxStreams: 50 },
    });
    expect(configuration.timeouts).toEqual({
      ...defaultTimeouts,
      idleMs: 600_000,
      shutdownGracePeriodMs: 0,
      webSocketPingMs: 5_000,
    });
    expect(configuration.logging.level).toBe("debug");
  });

  it("takes JSON, and null as absent", () => {
    const text = JSON.stringify({
      apiVersion: "sluice.dev/v1alpha1",
      kind: "GatewayConfiguration",
      limits: null,
      kubelet: { port: null },
    });
    expect(parseConfiguration(text, "x.json").kubelet.port).toBe(10_250);
  });

  it("resolves a relative file name's folder against the working directory", () => {
    const { cluster } = parseConfiguration(`${HEADER}cluster: {manifests: [a]}`, "deploy/x.yaml");
    expect(cluster.manifests).toEqual([resolve("deploy/a")]);
  });

  it("accepts each default where it is written out, and it changes nothing", () => {
    const file: Record<string, unknown> = {
      apiVersion: "sluice.dev/v1alpha1",
      kind: "GatewayConfiguration",
    };
    let written = 0;
    for (const { path, field } of placedFields(gatewayConfiguration)) {
      const around = path.slice(0, -1).reduce<Record<string, unknown> | undefined>((section, name) => {
        return section?.[name] as Record<string, unknown> | undefined;
      }, file);
      // Optional sections and lists stay absent.
      if (around === undefined) continue;
      const name = path.at(-1) ?? "";
      if (field.type === "section") around[name] = structuredClone(field.default ?? {});
      // Some defaults cannot be written: the empty string, what is read with another field only.
      else if (field.default !== undefined && field.default !== "" && !WITH_A_LIVE_API.has(name)) {
        around[name] = field.default;
        written += 1;
      }
    }
    const { featureGates, ...rest } = parseConfiguration(JSON.stringify(file), "f.json");
    const { featureGates: gates, ...defaults } = defaultConfiguration();
    expect(rest).toEqual(defaults);
    expect(featureGates.toString()).toBe(gates.toString());
    expect(written).toBeGreaterThan(70);
  });

  it("has the logger's levels", () => {
    const level: Parameters<typeof createLogger>[0]["level"] = defaultConfiguration().logging.level;
    expect(level).toBe("info");
  });
});

describe("a wrong configuration", () => {
  const refused: { name: string; text: string; problems: string[] }[] = [
    {
      name: "nothing at all",
      text: "# only a comment\n",
      problems: ["f.yaml:1: has no GatewayConfiguration"],
    },
    {
      name: "two documents",
      text: `${HEADER}---\n${HEADER}`,
      problems: ["f.yaml:4: holds a second document; one is allowed"],
    },
    {
      name: "a list",
      text: "- a\n",
      problems: [
        "f.yaml:1:1: must be a map, got a list",
        'f.yaml:1:1: apiVersion: is required and must be "sluice.dev/v1alpha1"',
        'f.yaml:1:1: kind: is required and must be "GatewayConfiguration"',
      ],
    },
    {
      name: "another kind",
      text: "apiVersion: v1\nkind: Pod\n",
      problems: [
        'f.yaml:1:1: apiVersion: must be "sluice.dev/v1alpha1", got "v1"',
        'f.yaml:2:1: kind: must be "GatewayConfiguration", got "Pod"',
      ],
    },
    ...["{}", "{admin: {port: 0}}", "{apiServer: null}"].map((listeners) => ({
      name: `no listener for traffic: ${listeners}`,
      text: `${HEADER}\nlisteners: ${listeners}\n`,
      problems: [NO_TRAFFIC.replace("4:1", listeners === "{apiServer: null}" ? "4:13" : "4:1")],
    })),
    {
      name: "unknown fields, with what was meant",
      text: `${HEADER}listener: {}\nlisteners:\n  apiserver: {}\nkubelet:\n  tls: true\ntimeouts:\n  idleMs: 5s\n`,
      problems: [
        'f.yaml:3:1: listener: unknown field; did you mean "listeners"?',
        NO_TRAFFIC,
        'f.yaml:5:3: listeners.apiserver: unknown field; did you mean "apiServer"?',
        "f.yaml:7:3: kubelet.tls: unknown field; valid: scheme, port, preferredAddressTypes, certificateAuthorityFile, insecureSkipTLSVerify, clientCertificateFile, clientKeyFile, allowedAddresses, allowAPIServerEndpoints, streaming, circuitBreaker, egressProxy, spareConnections, verifyNodeName",
        'f.yaml:9:3: timeouts.idleMs: unknown field; did you mean "idle"?',
      ],
    },
    {
      name: "wrong types",
      text: `${HEADER}listeners: 1\ncluster:\n  manifests: a.yaml\nkubelet:\n  insecureSkipTLSVerify: "yes"\n  port: [1]\nlogging:\n  level: true\nauthentication:\n  tokenAuthFile: 7\nauthorization:\n  mode:\n  - 3\n`,
      problems: [
        "f.yaml:3:1: listeners: must be a map, got the number 1",
        NO_TRAFFIC.replace("4:1", "3:1"),
        'f.yaml:5:3: cluster.manifests: must be a list of strings, got the string "a.yaml"',
        'f.yaml:7:3: kubelet.insecureSkipTLSVerify: must be true or false, got the string "yes"',
        'f.yaml:8:3: kubelet.port: must be a whole number such as 1000 or "10k", got a list',
        "f.yaml:10:3: logging.level: must be a string, got the boolean true",
        "f.yaml:12:3: authentication.tokenAuthFile: must be a string, got the number 7",
        "f.yaml:15:5: authorization.mode[0]: must be a string, got the number 3",
      ],
    },
    {
      name: "values that are not among the choices",
      text: `${HEADER}kubelet:\n  scheme: HTTPS\n  preferredAddressTypes:\n  - InternalIP\n  - internalip\nlogging:\n  level: verbose\nauthorization:\n  mode: [ABAC]\n`,
      problems: [
        'f.yaml:4:3: kubelet.scheme: "HTTPS" is not supported; did you mean "https"?',
        'f.yaml:7:5: kubelet.preferredAddressTypes[1]: "internalip" is not supported; did you mean "InternalIP"?',
        'f.yaml:9:3: logging.level: "verbose" is not supported; valid: debug, info, warn, error, silent',
        'f.yaml:11:10: authorization.mode[0]: "ABAC" is not supported; did you mean "RBAC"?',
      ],
    },
    {
      name: "numbers and durations",
      text: `${HEADER}limits:\n  maxRequestHeaderBytes: 64KB\n  maxConcurrentSessions: 0\n  maxRequestHeaders: 1.5\n  spdy:\n    maxHeaders: lots\ntimeouts:\n  idle: 30\n  dial: 5 s\n  webSocketPing: 2m\n  handshake: 1d\nlisteners:\n  apiServer: {}\n  admin:\n    port: 65536\n`,
      problems: [
        'f.yaml:4:3: limits.maxRequestHeaderBytes: must be a number of bytes such as 65536 or "64Ki": "64KB" is not a quantity',
        "f.yaml:5:3: limits.maxConcurrentSessions: must be between 1 and 1000000, got the number 0",
        'f.yaml:6:3: limits.maxRequestHeaders: must be a whole number such as 1000 or "10k", got the number 1.5',
        'f.yaml:8:5: limits.spdy.maxHeaders: must be a whole number such as 1000 or "10k": "lots" is not a quantity',
        'f.yaml:10:3: timeouts.idle: must be a duration with its unit such as "30s", got the number 30; did you mean "30s"?',
        'f.yaml:11:3: timeouts.dial: must be a duration such as "30s" or "4h0m0s": time: unknown unit " s" in duration "5 s"',
        'f.yaml:12:3: timeouts.webSocketPing: must be between 1s and 30s, got the string "2m"',
        'f.yaml:13:3: timeouts.handshake: must be a duration such as "30s" or "4h0m0s": time: unknown unit "d" in duration "1d"',
        "f.yaml:17:5: listeners.admin.port: must be between 0 and 65535, got the number 65536",
      ],
    },
    {
      name: "addresses and URLs",
      text: `${HEADER}listeners:\n  apiServer:\n    address: 127.0.0.1:6443\n  admin:\n    address: 10.0.0.256\nupstreamAPIServer:\n  url: https://user:pw@example.test\n`,
      problems: [
        'f.yaml:5:5: listeners.apiServer.address: must be an IP address or a host name without port, got "127.0.0.1:6443"',
        'f.yaml:7:5: listeners.admin.address: must be an IP address or a host name without port, got "10.0.0.256"',
        "f.yaml:9:3: upstreamAPIServer.url: must not hold credentials",
      ],
    },
    {
      name: "an API server with a path",
      text: `${HEADER}upstreamAPIServer: {url: "https://a.test/k8s?x"}\n`,
      problems: [
        'f.yaml:3:21: upstreamAPIServer.url: must be a host and port alone, such as "https://a.test"',
      ],
    },
    {
      name: "rights to impersonate without a certificate to have them by",
      text: `${HEADER}upstreamAPIServer: {url: "https://a.test", nameRequester: false}\n`,
      problems: ["f.yaml:3:44: upstreamAPIServer.nameRequester: is read with clientCertificateFile only"],
    },
    {
      name: "an API server that is no URL",
      text: `${HEADER}upstreamAPIServer: {url: "a.test:443"}\n`,
      problems: ['f.yaml:3:21: upstreamAPIServer.url: must be an http or https URL, got "a.test:443"'],
    },
    {
      name: "halves of what belongs together",
      text: `${HEADER}listeners:\n  apiServer:\n    tls:\n      certFile: a\nupstreamAPIServer:\n  clientKeyFile: k\nkubelet:\n  certificateAuthorityFile: ca\n  insecureSkipTLSVerify: true\n  clientCertificateFile: c\n`,
      problems: [
        "f.yaml:5:5: listeners.apiServer.tls.keyFile: is required: a listener with TLS needs certFile and keyFile",
        'f.yaml:7:1: upstreamAPIServer.url: is required, such as "https://kubernetes.default.svc:443"',
        "f.yaml:7:1: upstreamAPIServer.clientCertificateFile: is required with clientKeyFile",
        "f.yaml:9:1: kubelet.clientKeyFile: is required with clientCertificateFile",
        "f.yaml:11:3: kubelet.insecureSkipTLSVerify: must be false if certificateAuthorityFile is given",
      ],
    },
    {
      name: "feature gates",
      text: `${HEADER}featureGates:\n  PortforwardWebsockets: true\n  NodeDeclaredFeatures: "false"\n`,
      problems: [
        'f.yaml:4:3: featureGates.PortforwardWebsockets: unrecognized feature gate: PortforwardWebsockets; did you mean "PortForwardWebsockets"?',
        "f.yaml:5:3: featureGates.NodeDeclaredFeatures: must be true or false",
      ],
    },
    {
      name: "a feature gate without what it needs",
      text: `${HEADER}featureGates: {NodeDeclaredFeatures: false}\n`,
      problems: [
        "f.yaml:3:1: featureGates: ExtendWebSocketsToKubelet is enabled, but depends on features that are disabled: [NodeDeclaredFeatures]",
      ],
    },
    {
      name: "empty strings and lists",
      text: `${HEADER}authentication: {tokenAuthFile: ""}\ncluster: {manifests: [""]}\nauthorization: {mode: []}\n`,
      problems: [
        "f.yaml:3:18: authentication.tokenAuthFile: must not be empty",
        "f.yaml:4:23: cluster.manifests[0]: must not be empty",
        "f.yaml:5:17: authorization.mode: must name at least one of AlwaysAllow, AlwaysDeny, RBAC, Webhook",
      ],
    },
    {
      name: "a stall buffer that payload alone could fill",
      text: `${HEADER}limits:\n  socketBufferBytes: 1Mi\n`,
      problems: [
        "f.yaml:3:1: limits.stalledPeerBufferBytes: must be at least 1152Ki: socketBufferBytes and 128Ki",
      ],
    },
    {
      name: "a duplicate key",
      text: `${HEADER}kind: GatewayConfiguration\n`,
      problems: ["f.yaml:3:1: Map keys must be unique"],
    },
  ];
  it.each(refused)("is refused: $name", ({ text, problems }) => {
    let thrown: unknown;
    try {
      parseConfiguration(text, "f.yaml");
    } catch (reason) {
      thrown = reason;
    }
    expect(thrown).toBeInstanceOf(ConfigurationError);
    expect((thrown as ConfigurationError).message.split("\n")).toEqual(problems);
  });
});

describe("a configuration of 256 KiB", () => {
  const long = (line: (index: number) => string) => {
    let text = HEADER;
    for (let index = 0; text.length < 256 * 1024; index += 1) text += line(index);
    return text;
  };

  // Quadratic look-ups took 15 s and more.
  it.each([
    ["unknown fields", long((index) => `f${index}: 1\n`), "f99: unknown field"],
    ["equal fields", long(() => "a: 1\n"), "Map keys must be unique"],
    [
      "problems in a list",
      `${long(() => "#\n")}cluster: {manifests: [${"1,".repeat(50_000)}]}`,
      "manifests[49999]",
    ],
  ])("is read in linear time: %s", (_what, text, problem) => {
    const before = process.cpuUsage();
    expect(() => parseConfiguration(text, "f.yaml")).toThrow(problem);
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(8_000);
  });

  it("names a hundred unknown fields of a map and counts the others", () => {
    const text = long((index) => `f${index}: 1\n`);
    const fields = text.split("\n").length - HEADER.split("\n").length;
    expect(() => parseConfiguration(text, "f.yaml")).toThrow(`f100: unknown field, and ${fields - 101} more`);
  });
});
