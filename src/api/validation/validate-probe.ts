import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import { type FieldError, forbiddenField, invalidValue } from "../field-errors.ts";
import type { Container } from "../objects.ts";
import type { Probe } from "../probe-objects.ts";
import { type HandlerRules, handlerErrors } from "./validate-handler.ts";

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

/** An init container that ends before the others start cannot have probes. */
export function initContainerProbeErrors(container: Container, path: FieldPath): FieldError[] {
  return (["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] as const)
    .filter(
      (name) => container[name] !== undefined && !(name === "lifecycle" && isStopSignalAlone(container)),
    )
    .map((name) =>
      forbiddenField([...path, name], "may not be set for init containers without restartPolicy=Always"),
    );
}

/**
 * The API server clears a stop signal, whose gate is off, and then a lifecycle with no other field.
 */
export function isStopSignalAlone({ lifecycle }: Container): boolean {
  return Object.keys(lifecycle ?? {}).join() === "stopSignal";
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
