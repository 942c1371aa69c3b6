// src/config: configuration, limits, timeouts, feature gates: parsed once, nothing optional inside

import { availableParallelism } from "node:os";
import {
  ConfigurationError,
  type ConfigurationProblem,
} from "@sluice/client/internal/config/configuration-error";
import { type Field, type JsonSchema, table, type ValueOf } from "@sluice/client/internal/config/field";
import { choice, constant } from "@sluice/client/internal/config/fields";
import { flagProblem } from "@sluice/client/internal/config/given-flags";
import type { NamedFile } from "@sluice/client/internal/config/named-file-text";
import { Section } from "@sluice/client/internal/config/section";
import { parseYamlDocuments } from "@sluice/client/internal/config/yaml-documents";
import { count } from "./number-fields.ts";
import { type FlagValues, flagsOf, readFlags } from "./read-flags.ts";
import { optionalSection, section, tableSchema } from "./section-fields.ts";
import { audit } from "./sections/audit.ts";
import { authentication } from "./sections/authentication.ts";
import { authorization, requireAuthorization, sessionAuthorization } from "./sections/authorization.ts";
import { cluster } from "./sections/cluster.ts";
import { edge } from "./sections/edge.ts";
import { featureGates, withGatesOfFlag } from "./sections/feature-gates-section.ts";
import { kubelet } from "./sections/kubelet.ts";
import { limits } from "./sections/limits.ts";
import { listeners } from "./sections/listeners.ts";
import { policy } from "./sections/policy.ts";
import { quotaStore } from "./sections/quota-store.ts";
import { recording } from "./sections/recording.ts";
import { resumption } from "./sections/resumption.ts";
import { timeouts } from "./sections/timeouts.ts";
import { tracing } from "./sections/tracing.ts";
import { upstreamApiServer } from "./sections/upstream-api-server.ts";
import { podProbes, upstreamProbes } from "./sections/upstream-probes.ts";

/** The number of serving processes. Past it the configuration is refused. */
const MAX_WORKERS = 256;

const workers = count("Number of serving processes; `auto` starts one per available core.", {
  default: 1,
  or: "auto",
  from: 1,
  to: MAX_WORKERS,
  flag: { name: "workers", read: workersOf },
});

type Workers = ReturnType<typeof workers.read>;

export function workerCount(given: Workers): number {
  return given === "auto" ? availableParallelism() : given;
}

function workersOf(text: string): Workers {
  const number = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (text === "auto" || (number >= 1 && number <= MAX_WORKERS)) return text === "auto" ? text : number;
  throw new RangeError(
    `must be a number between 1 and ${MAX_WORKERS}, or auto, got ${JSON.stringify(text.slice(0, 80))}`,
  );
}

const API_VERSION = "sluice.dev/v1alpha1";
export const CONFIGURATION_KIND = "GatewayConfiguration";

/** Every section of the file. */
export const gatewayConfiguration = table({
  apiVersion: constant(API_VERSION),
  kind: constant(CONFIGURATION_KIND),
  listeners: section(
    "Where the gateway listens. At least one of apiServer, kubelet and ingress is required.",
    listeners,
    {
      default: { apiServer: {} },
    },
  ),
  cluster: section("Where Sluice reads the cluster's objects: manifests or a live API.", cluster),
  authentication: section(
    "How callers prove their identity. Authenticators are tried in this order.",
    authentication,
  ),
  authorization: section("What callers may do.", authorization),
  policy: reloaded(
    section("Rules about sessions, applied after authorization and before a node is dialled.", policy),
  ),
  quotaStore: optionalSection(
    "Valkey or Redis that counts the sessions of all replicas for `policy.limits`. Absent: each replica counts its own.",
    quotaStore,
  ),
  audit: section("Audit events of requests. Without `log` and `webhook` none are recorded.", audit),
  recording: optionalSection(
    "Recordings of sessions (docs/session-recording.md). Absent: none. `rules` and the signing key are read again.",
    recording,
  ),
  edge: section("Trust before authentication: web origins and proxies.", edge),
  upstreamAPIServer: optionalSection(
    "The API server that answers requests other than streams. Absent: Sluice answers them read-only from the manifests.",
    upstreamApiServer,
  ),
  kubelet: section("How the gateway reaches kubelets.", kubelet),
  upstreamProbes: section("Active health checks of upstreams.", upstreamProbes),
  podProbes: section(
    "Probes pods in place of their kubelets, and sets their conditions and endpoints.",
    podProbes,
  ),
  featureGates,
  limits: section("Sizes and counts.", limits),
  timeouts: section("Durations.", timeouts),
  resumption: section("Sessions between two Sluices survive lost connections.", resumption),
  sessions: section(
    "How long running sessions keep their rights, what is kept of their output, and how port-forwards are carried.",
    sessionAuthorization,
  ),
  workers,
  tracing: optionalSection(
    "OpenTelemetry traces, one for each request (docs/tracing.md). Absent: none.",
    tracing,
  ),
  logging: reloaded(
    section(
      "Logs on standard error.",
      table({
        level: choice(
          "The least severe level that is logged.",
          ["debug", "info", "warn", "error", "silent"],
          {
            default: "info",
          },
        ),
        format: choice(
          "`auto`: text on a terminal, otherwise JSON (docs/logs.md).",
          ["auto", "text", "json"],
          { default: "auto", flag: "log-format" },
        ),
      }),
    ),
  ),
});

/** The file's JSON Schema (draft-07), for editors' YAML servers. */
export function configurationSchema(): JsonSchema {
  const $schema = "http://json-schema.org/draft-07/schema#";
  return { $schema, title: CONFIGURATION_KIND, ...tableSchema(gatewayConfiguration) };
}

/** The `sluice serve` flags that set fields. */
export const configurationFlags = flagsOf(gatewayConfiguration);

type Values = ValueOf<typeof gatewayConfiguration>;

/**
 * The complete configuration. Files are absolute paths, durations milliseconds; undefined only if
 * absence has a meaning.
 */
export interface GatewayConfiguration extends Omit<Values, "apiVersion" | "kind"> {
  /** Every file named above, for `checkNamedFiles`. */
  readonly namedFiles: readonly NamedFile[];
}

/**
 * Reads a configuration file (YAML or JSON, one document); flags override its fields. Throws
 * `ConfigurationError` with all problems of both.
 */
export function parseConfiguration(
  text: string,
  fileName: string,
  flags: FlagValues = {},
): GatewayConfiguration {
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
  const namedFiles: NamedFile[] = [];
  const given = readFlags(gatewayConfiguration, flags, document.value, problems);
  const root = new Section(
    { fileName, document, problems, files: namedFiles, flags: given },
    [],
    document.value,
  );
  const { apiVersion: _, kind: __, ...values } = gatewayConfiguration.read(root);
  requireAuthorization(values, root);
  const gates = withGatesOfFlag(values.featureGates, flags["feature-gates"], (flag, message) =>
    problems.push(flagProblem(flag, message)),
  );
  if (problems.length > 0) {
    throw new ConfigurationError(problems.toSorted((a, b) => a.line - b.line));
  }
  return { ...values, featureGates: gates, namedFiles };
}

/** The configuration of a file with only apiVersion and kind. */
export function defaultConfiguration(flags?: FlagValues): GatewayConfiguration {
  return parseConfiguration(`apiVersion: ${API_VERSION}\nkind: ${CONFIGURATION_KIND}\n`, "defaults", flags);
}

/** A section that a running gateway reads again. All other fields need a restart. */
function reloaded<F extends Field>(field: F): F {
  return { ...field, isReloaded: true };
}

function wholeFile(fileName: string, line: number, message: string): ConfigurationProblem {
  return { source: fileName, line, column: 0, path: "", message };
}
