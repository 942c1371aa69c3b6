import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import {
  duplicate,
  type FieldError,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
} from "../field-errors.ts";
import type { Container, ContainerPort, PodSpec } from "../objects.ts";
import type { ProbeFieldOptions } from "./disabled-probe-fields.ts";
import {
  labelProblems,
  portNameProblems,
  portNumberProblems,
  qualifiedNameProblems,
  subdomainProblems,
} from "./name-rules.ts";
import { type HandlerRules, lifecycleAndProbeErrors } from "./validate-probe.ts";

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

function readinessGateErrors(
  { conditionType = "" }: { readonly conditionType?: string },
  path: FieldPath,
): FieldError[] {
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

const PROTOCOLS = ["SCTP", "TCP", "UDP"];
const CONTAINER_RESTART_POLICIES = ["Always", "Never", "OnFailure"];
/** Other containers must not depend on a debugging container. */
const NOT_FOR_EPHEMERAL_CONTAINERS = [
  "ports",
  "resources",
  "resizePolicy",
  "restartPolicy",
  "livenessProbe",
  "readinessProbe",
  "startupProbe",
  "lifecycle",
] as const;

interface ContainerRules {
  /**
   * Names of all the pod's containers so far, of every kind: exec chooses among all of them by
   * name.
   */
  readonly names: Set<string>;
  /** A template's image may be blank, because something else replaces it. */
  readonly isTemplate: boolean;
}

/** Checks that apply to containers of every kind. */
function containerErrors(
  container: Container,
  path: FieldPath,
  { names, isTemplate }: ContainerRules,
): FieldError[] {
  const { name = "", image = "", ports = [] } = container;
  const namePath = [...path, "name"];
  const isTaken = name !== "" && names.has(name);
  names.add(name);
  return [
    ...(name === "" ? [required(namePath)] : []),
    ...(name === "" ? [] : labelProblems(name)).map((problem) => invalidValue(namePath, name, problem)),
    ...(isTaken ? [duplicate(namePath, name)] : []),
    ...imageErrors(image, [...path, "image"], isTemplate),
    ...portErrors(ports, [...path, "ports"]),
  ];
}

function restartPolicyErrors({ restartPolicy }: Container, path: FieldPath): FieldError[] {
  return restartPolicy === undefined || CONTAINER_RESTART_POLICIES.includes(restartPolicy)
    ? []
    : [notSupported([...path, "restartPolicy"], restartPolicy, CONTAINER_RESTART_POLICIES)];
}

function ephemeralContainerErrors(container: Container, path: FieldPath): FieldError[] {
  return NOT_FOR_EPHEMERAL_CONTAINERS.filter((name) => isSet(container, name)).map((name) =>
    forbiddenField([...path, name], "cannot be set for an Ephemeral Container"),
  );
}

/**
 * Absent and empty values get defaults before Kubernetes validates, so only a given value can be
 * wrong.
 */
export function unsupportedErrors(
  path: FieldPath,
  value: string | undefined,
  supported: readonly string[],
): FieldError[] {
  return value === undefined || value === "" || supported.includes(value)
    ? []
    : [notSupported(path, value, supported)];
}

/** Resources are not a pointer in Go, so empty ones count as absent. */
function isSet(container: Container, name: (typeof NOT_FOR_EPHEMERAL_CONTAINERS)[number]): boolean {
  const value = container[name];
  if (name === "resources") return Object.keys(value ?? {}).length > 0;
  if (name === "lifecycle") return value !== undefined && !isStopSignalAlone(container);
  return value !== undefined && value !== "";
}

function imageErrors(image: string, path: FieldPath, isTemplate: boolean): FieldError[] {
  if (image === "") return [required(path)];
  return isTemplate || image === image.trim()
    ? []
    : [invalidValue(path, image, "must not have leading or trailing whitespace")];
}

function portErrors(ports: readonly ContainerPort[], path: FieldPath): FieldError[] {
  const names = new Set<string>();
  return ports.flatMap((port, index) => {
    const { name = "", containerPort = 0, hostPort = 0, protocol } = port ?? {};
    const at = (field: string): FieldPath => [...path, index, field];
    const nameProblems = name === "" ? [] : portNameProblems(name);
    const isTaken = name !== "" && nameProblems.length === 0 && names.has(name);
    names.add(name);
    return [
      ...nameProblems.map((problem) => invalidValue(at("name"), name, problem)),
      ...(isTaken ? [duplicate(at("name"), name)] : []),
      ...(containerPort === 0
        ? [required(at("containerPort"))]
        : rangeErrors(at("containerPort"), containerPort)),
      ...(hostPort === 0 ? [] : rangeErrors(at("hostPort"), hostPort)),
      ...unsupportedErrors(at("protocol"), protocol, PROTOCOLS),
    ];
  });
}

function rangeErrors(path: FieldPath, port: number): FieldError[] {
  return portNumberProblems(port).map((problem) => invalidValue(path, port, problem));
}

/** An init container that ends before the others start cannot have probes. */
function initContainerProbeErrors(container: Container, path: FieldPath): FieldError[] {
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
function isStopSignalAlone({ lifecycle }: Container): boolean {
  return Object.keys(lifecycle ?? {}).join() === "stopSignal";
}
