import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import { type FieldError, invalidValue, required } from "../field-errors.ts";
import type { Container, PodSpec, ReadinessGate } from "../objects.ts";
import type { ProbeFieldOptions } from "./disabled-probe-fields.ts";
import { qualifiedNameProblems, subdomainProblems } from "./name-rules.ts";
import {
  containerErrors,
  ephemeralContainerErrors,
  restartPolicyErrors,
  unsupportedErrors,
} from "./validate-container.ts";
import { type HandlerRules, initContainerProbeErrors, lifecycleAndProbeErrors } from "./validate-probe.ts";

const RESTART_POLICIES = ["Always", "OnFailure", "Never"];
const MAX_INT32 = 2 ** 31 - 1;
const DEFAULT_GRACE_PERIOD_SECONDS = 30;

interface PodSpecRules extends ProbeFieldOptions {
  readonly isTemplate: boolean;
}

/**
 * The API server's checks of the fields that Sluice reads, in a pod or a pod template. Expects a
 * value with defaults.
 */
export function podSpecErrors(spec: PodSpec, path: FieldPath, rules: PodSpecRules): FieldError[] {
  const { containers = [], nodeName = "", restartPolicy, readinessGates = [], activeDeadlineSeconds } = spec;
  const nodeNameErrors = (nodeName === "" ? [] : subdomainProblems(nodeName)).map((problem) =>
    invalidValue([...path, "nodeName"], nodeName, problem),
  );
  return [
    ...(containers.length === 0 ? [required([...path, "containers"])] : []),
    ...allContainerErrors(spec, path, rules),
    ...unsupportedErrors([...path, "restartPolicy"], restartPolicy, RESTART_POLICIES),
    ...readinessGates.flatMap((gate, index) =>
      readinessGateErrors(gate ?? {}, [...path, "readinessGates", index]),
    ),
    ...nodeNameErrors,
    ...deadlineErrors(activeDeadlineSeconds, [...path, "activeDeadlineSeconds"]),
  ];
}

function readinessGateErrors({ conditionType = "" }: ReadinessGate, path: FieldPath): FieldError[] {
  return qualifiedNameProblems(conditionType).map((problem) =>
    invalidValue([...path, "conditionType"], conditionType, problem),
  );
}

function deadlineErrors(seconds: number | undefined, path: FieldPath): FieldError[] {
  if (seconds === undefined || (seconds >= 1 && seconds <= MAX_INT32)) return [];
  return [invalidValue(path, seconds, `must be between 1 and ${MAX_INT32}, inclusive`)];
}

function allContainerErrors(spec: PodSpec, path: FieldPath, rules: PodSpecRules): FieldError[] {
  const { containers = [], initContainers = [], ephemeralContainers = [] } = spec;
  const common = { names: new Set<string>(), isTemplate: rules.isTemplate };
  const handlerRules: HandlerRules = {
    ...rules,
    gracePeriodSeconds: spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_PERIOD_SECONDS,
  };
  type Check = (container: Container, at: FieldPath) => FieldError[];
  const each = (list: readonly Container[], name: string, check: Check): FieldError[] =>
    list.flatMap((entry, index) => {
      const [container, at] = [entry ?? {}, [...path, name, index]];
      return [...containerErrors(container, at, common), ...check(container, at)];
    });
  return [
    ...each(containers, "containers", (container, at) => [
      ...lifecycleAndProbeErrors(container, at, handlerRules),
      ...restartPolicyErrors(container, at),
    ]),
    ...each(initContainers, "initContainers", (container, at) => [
      ...restartPolicyErrors(container, at),
      ...(container.restartPolicy === "Always"
        ? lifecycleAndProbeErrors(container, at, handlerRules)
        : initContainerProbeErrors(container, at)),
    ]),
    ...each(ephemeralContainers, "ephemeralContainers", ephemeralContainerErrors),
  ];
}
