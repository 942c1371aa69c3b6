// src/config: configuration, limits, timeouts, feature gates: parsed once, nothing optional inside

import { type Audit, readAudit } from "./audit.ts";
import { type Authentication, readAuthentication } from "./authentication.ts";
import { type Authorization, readAuthorization } from "./authorization.ts";
import { type ClusterSources, readClusterSources } from "./cluster.ts";
import { ConfigurationError, type ConfigurationProblem } from "./configuration-error.ts";
import { type Edge, readEdge } from "./edge.ts";
import { FEATURE_GATES, FeatureGateError, FeatureGates, featureGateNames } from "./feature-gates.ts";
import { type KubeletConnection, readKubelet } from "./kubelet.ts";
import type { Limits } from "./limits.ts";
import { type Listeners, readListeners } from "./listeners.ts";
import type { NamedFile } from "./named-file.ts";
import { suggestion } from "./nearest-name.ts";
import { readPolicy, type SessionPolicy } from "./policy.ts";
import { readLimits, readTimeouts } from "./read-bounds.ts";
import { type Resumption, readResumption } from "./resumption.ts";
import { Section } from "./section.ts";
import type { Timeouts } from "./timeouts.ts";
import { readUpstreamApiServer, type UpstreamApiServer } from "./upstream-api-server.ts";
import {
  type PodProbeSettings,
  readPodProbes,
  readUpstreamProbes,
  type UpstreamProbeSettings,
} from "./upstream-probes.ts";
import { readWorkers, type Workers } from "./workers.ts";
import { parseYamlDocuments } from "./yaml-documents.ts";

export const CONFIGURATION_API_VERSION = "sluice.dev/v1alpha1";
export const CONFIGURATION_KIND = "GatewayConfiguration";

export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;

/** All that a gateway is told. Files are absolute paths, durations milliseconds; a field is undefined only where absence means something. */
export interface GatewayConfiguration {
  readonly listeners: Listeners;
  readonly cluster: ClusterSources;
  readonly authentication: Authentication;
  readonly authorization: Authorization;
  /** Who may stream what, finer than verbs: decided before a node is dialled. */
  readonly policy: SessionPolicy;
  readonly audit: Audit;
  readonly edge: Edge;
  /** Absent: everything that is not streaming is answered read-only from the manifests. */
  readonly upstreamAPIServer: UpstreamApiServer | undefined;
  readonly kubelet: KubeletConnection;
  /** Who behind us is asked whether it is there, before sessions find out. */
  readonly upstreamProbes: UpstreamProbeSettings;
  readonly podProbes: PodProbeSettings;
  readonly featureGates: FeatureGates;
  readonly limits: Limits;
  readonly timeouts: Timeouts;
  readonly resumption: Resumption;
  /** Processes that serve; 1 is the one that was started. */
  readonly workers: Workers;
  /** Every file above that is read, for `checkNamedFiles`. */
  readonly namedFiles: readonly NamedFile[];
  readonly logging: { readonly level: (typeof LOG_LEVELS)[number] };
}

/** Reads a configuration file (YAML or JSON, one document). Throws `ConfigurationError` with everything that is wrong with it. */
export function parseConfiguration(text: string, fileName: string): GatewayConfiguration {
  const [document, second] = parseYamlDocuments(text, fileName);
  if (document === undefined) {
    throw new ConfigurationError([wholeFile(fileName, 1, `has no ${CONFIGURATION_KIND}`)]);
  }
  if (second !== undefined) {
    throw new ConfigurationError([
      wholeFile(fileName, second.lineOf([]), "holds a second document; one is allowed"),
    ]);
  }
  const problems: ConfigurationProblem[] = [];
  const files: NamedFile[] = [];
  const root = new Section({ fileName, document, problems, files }, [], document.value);
  const configuration = readConfiguration(root, files);
  if (problems.length > 0) {
    throw new ConfigurationError(problems.toSorted((a, b) => a.line - b.line));
  }
  return configuration;
}

/** What a file with nothing but its apiVersion and kind gives. */
export function defaultConfiguration(): GatewayConfiguration {
  return parseConfiguration(
    `apiVersion: ${CONFIGURATION_API_VERSION}\nkind: ${CONFIGURATION_KIND}\n`,
    "defaults",
  );
}

function readConfiguration(root: Section, namedFiles: readonly NamedFile[]): GatewayConfiguration {
  requireValue(root, "apiVersion", CONFIGURATION_API_VERSION);
  requireValue(root, "kind", CONFIGURATION_KIND);
  const logging = root.section("logging");
  const configuration: GatewayConfiguration = {
    listeners: readListeners(root.section("listeners")),
    cluster: readClusterSources(root.section("cluster")),
    authentication: readAuthentication(root.section("authentication")),
    authorization: readAuthorization(root.section("authorization")),
    policy: readPolicy(root.section("policy")),
    audit: readAudit(root.section("audit")),
    edge: readEdge(root.section("edge")),
    upstreamAPIServer: root.has("upstreamAPIServer")
      ? readUpstreamApiServer(root.section("upstreamAPIServer"))
      : undefined,
    kubelet: readKubelet(root.section("kubelet")),
    upstreamProbes: readUpstreamProbes(root.section("upstreamProbes")),
    podProbes: readPodProbes(root.section("podProbes")),
    featureGates: readFeatureGates(root.section("featureGates"), root),
    limits: readLimits(root.section("limits")),
    timeouts: readTimeouts(root.section("timeouts")),
    resumption: readResumption(root.section("resumption")),
    workers: readWorkers(root),
    namedFiles,
    logging: { level: logging.choice("level", "info", LOG_LEVELS) },
  };
  logging.finish();
  root.finish();
  return configuration;
}

function requireValue(root: Section, name: string, wanted: string): void {
  const found = root.optionalString(name, (value) =>
    value === wanted
      ? undefined
      : `must be ${JSON.stringify(wanted)}, got ${JSON.stringify(value.slice(0, 80))}`,
  );
  if (found === undefined && !root.has(name)) {
    root.problem(name, `is required and must be ${JSON.stringify(wanted)}`);
  }
}

function readFeatureGates(section: Section, root: Section): FeatureGates {
  const settings: Record<string, boolean> = {};
  for (const [name, value] of section.entries()) {
    if (typeof value !== "boolean") {
      section.problem(name, "must be true or false");
    } else if (Object.hasOwn(FEATURE_GATES, name) || name === "AllAlpha" || name === "AllBeta") {
      settings[name] = value;
    } else {
      section.problem(name, `unrecognized feature gate: ${name}${suggestion(name, featureGateNames)}`);
    }
  }
  try {
    return FeatureGates.parse(settings);
  } catch (reason) {
    if (!(reason instanceof FeatureGateError)) {
      throw reason;
    }
    root.problem("featureGates", reason.message);
    return FeatureGates.defaults;
  }
}

function wholeFile(fileName: string, line: number, message: string): ConfigurationProblem {
  return { source: fileName, line, column: 0, path: "", message };
}
