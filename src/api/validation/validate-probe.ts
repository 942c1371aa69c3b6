import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import { type FieldError, forbiddenField, invalidValue, notSupported, required } from "../field-errors.ts";
import type { Container } from "../objects.ts";
import type {
  ExecAction,
  GRPCAction,
  HTTPGetAction,
  LifecycleHandler,
  Probe,
  TCPSocketAction,
} from "../probe-objects.ts";
import type { ProbeFieldOptions } from "./disabled-probe-fields.ts";
import { httpHeaderNameProblems, portNameProblems, portNumberProblems } from "./name-rules.ts";

const NEVER_NEGATIVE = [
  "initialDelaySeconds",
  "timeoutSeconds",
  "periodSeconds",
  "successThreshold",
  "failureThreshold",
] as const;

/** Hooks and probes of a regular container, or of an init container with restartPolicy Always. */
export function lifecycleAndProbeErrors(
  container: Container,
  path: FieldPath,
  rules: HandlerRules,
): FieldError[] {
  const { lifecycle = {}, livenessProbe, readinessProbe, startupProbe } = container;
  const hooks = (["postStart", "preStop"] as const).flatMap((name) => {
    const hook = lifecycle[name];
    return hook === undefined ? [] : handlerErrors(hook, [...path, "lifecycle", name], rules);
  });
  return [
    ...hooks,
    ...(livenessProbe ? endingProbeErrors(livenessProbe, [...path, "livenessProbe"], rules) : []),
    ...(readinessProbe ? readinessProbeErrors(readinessProbe, [...path, "readinessProbe"], rules) : []),
    ...(startupProbe ? endingProbeErrors(startupProbe, [...path, "startupProbe"], rules) : []),
  ];
}

/** For liveness and startup, the first success counts and a failure ends the container. */
function endingProbeErrors(probe: Probe, path: FieldPath, rules: HandlerRules): FieldError[] {
  const { successThreshold = 0 } = probe;
  return [
    ...probeErrors(probe, path, rules),
    ...(successThreshold === 1
      ? []
      : [invalidValue([...path, "successThreshold"], successThreshold, "must be 1")]),
  ];
}

function readinessProbeErrors(probe: Probe, path: FieldPath, rules: HandlerRules): FieldError[] {
  const seconds = probe.terminationGracePeriodSeconds;
  const at = [...path, "terminationGracePeriodSeconds"];
  return [
    ...probeErrors(probe, path, rules),
    ...(seconds === undefined ? [] : [invalidValue(at, seconds, "must not be set for readinessProbes")]),
  ];
}

function probeErrors(probe: Probe, path: FieldPath, rules: HandlerRules): FieldError[] {
  const { terminationGracePeriodSeconds: seconds } = probe;
  const { exec, httpGet, tcpSocket, grpc } = probe;
  const handler = { ...(exec && { exec }), ...(httpGet && { httpGet }), ...(tcpSocket && { tcpSocket }) };
  return [
    ...handlerErrors({ ...handler, ...(grpc && { grpc }) }, path, rules),
    ...NEVER_NEGATIVE.flatMap((name) => {
      const value = probe[name] ?? 0;
      return value < 0 ? [invalidValue([...path, name], value, "must be greater than or equal to 0")] : [];
    }),
    ...(seconds !== undefined && seconds <= 0
      ? [invalidValue([...path, "terminationGracePeriodSeconds"], seconds, "must be greater than 0")]
      : []),
  ];
}

export interface HandlerRules extends ProbeFieldOptions {
  /** The pod's terminationGracePeriodSeconds; a hook cannot sleep longer. */
  readonly gracePeriodSeconds: number;
}

/** A handler has exactly one action; in this order, those after the first are refused unread. */
function handlerErrors(handler: LifecycleHandler, path: FieldPath, rules: HandlerRules): FieldError[] {
  const { exec, httpGet, tcpSocket, grpc, sleep } = handler;
  const checks: readonly [name: string, check: false | (() => FieldError[])][] = [
    ["exec", exec !== undefined && (() => execErrors(exec, [...path, "exec"]))],
    ["httpGet", httpGet !== undefined && (() => httpGetErrors(httpGet, [...path, "httpGet"], rules))],
    ["tcpSocket", tcpSocket !== undefined && (() => tcpSocketErrors(tcpSocket, [...path, "tcpSocket"]))],
    ["grpc", grpc !== undefined && (() => grpcErrors(grpc, [...path, "grpc"], rules))],
    ["sleep", sleep !== undefined && (() => sleepErrors(sleep.seconds ?? 0, [...path, "sleep"], rules))],
  ];
  const given = checks.flatMap(([name, check]) => (check ? [{ name, check }] : []));
  if (given.length === 0) return [required(path, "must specify a handler type")];
  return given.flatMap(({ name, check }, index) =>
    index === 0 ? check() : [forbiddenField([...path, name], "may not specify more than 1 handler type")],
  );
}

function execErrors({ command = [] }: ExecAction, path: FieldPath): FieldError[] {
  return command.length === 0 ? [required([...path, "command"])] : [];
}

function httpGetErrors(action: HTTPGetAction, path: FieldPath, rules: HandlerRules): FieldError[] {
  const { path: urlPath = "", port, scheme = "", httpHeaders = [] } = action;
  return [
    ...(urlPath === "" ? [required([...path, "path"])] : []),
    ...portErrors(port, [...path, "port"]),
    ...(scheme === "HTTP" || scheme === "HTTPS"
      ? []
      : [notSupported([...path, "scheme"], scheme, ["HTTP", "HTTPS"])]),
    ...httpHeaders.flatMap((header) => {
      const { name = "" } = header ?? {};
      return httpHeaderNameProblems(name).map((problem) =>
        invalidValue([...path, "httpHeaders"], name, problem),
      );
    }),
    ...protocolErrors(action, [...path, "protocol"], rules),
  ];
}

/** KEP-5999. Forbidden is a safety net: a field whose gate is off was cleared before. */
function protocolErrors(
  { protocol, scheme, host = "" }: HTTPGetAction,
  path: FieldPath,
  { allowsHTTPProtocol }: HandlerRules,
): FieldError[] {
  if (protocol === undefined) return [];
  if (!allowsHTTPProtocol) return [gateIsOff(path, "H2CContainerProbe")];
  if (protocol === "HTTP1") return [];
  if (protocol !== "HTTP2") return [notSupported(path, protocol, ["HTTP1", "HTTP2"])];
  return [
    ...(scheme === "HTTPS"
      ? [invalidValue(path, protocol, "HTTP2 cannot be combined with scheme HTTPS")]
      : []),
    ...(host === "" ? [] : [invalidValue(path, protocol, "HTTP2 cannot be combined with host")]),
  ];
}

function tcpSocketErrors({ port }: TCPSocketAction, path: FieldPath): FieldError[] {
  return portErrors(port, [...path, "port"]);
}

function grpcErrors(action: GRPCAction, path: FieldPath, { allowsGRPCMode }: HandlerRules): FieldError[] {
  const { port = 0, mode } = action as Partial<GRPCAction>;
  return [...portErrors(port, [...path, "port"]), ...grpcModeErrors(mode, [...path, "mode"], allowsGRPCMode)];
}

/** KEP-4939. The gate is one condition, which can go when the gate does. */
function grpcModeErrors(mode: string | undefined, path: FieldPath, isAllowed: boolean): FieldError[] {
  if (mode === undefined) return [];
  if (!isAllowed) return [gateIsOff(path, "GRPCContainerProbeTLS")];
  return mode === "Plaintext" || mode === "TLS" ? [] : [notSupported(path, mode, ["Plaintext", "TLS"])];
}

function gateIsOff(path: FieldPath, gate: string): FieldError {
  return forbiddenField(path, `only supported when the ${gate} feature gate is enabled`);
}

function sleepErrors(seconds: number, path: FieldPath, { gracePeriodSeconds }: HandlerRules): FieldError[] {
  if (seconds >= 0 && seconds <= gracePeriodSeconds) return [];
  const limit = `must be non-negative and less than terminationGracePeriodSeconds (${gracePeriodSeconds})`;
  return [invalidValue(path, seconds, limit)];
}

/** An absent port is Go's zero. */
function portErrors(port: number | string | undefined, path: FieldPath): FieldError[] {
  const problems = typeof port === "string" ? portNameProblems(port) : portNumberProblems(port ?? 0);
  return problems.map((problem) => invalidValue(path, port ?? 0, problem));
}
