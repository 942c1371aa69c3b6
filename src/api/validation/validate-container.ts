import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import {
  duplicate,
  type FieldError,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
} from "../field-errors.ts";
import type { Container, ContainerPort } from "../objects.ts";
import { labelProblems, portNameProblems, portNumberProblems } from "./name-rules.ts";
import { isStopSignalAlone } from "./validate-probe.ts";

const PROTOCOLS = ["SCTP", "TCP", "UDP"];
const RESTART_POLICIES = ["Always", "Never", "OnFailure"];
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
export function containerErrors(
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

export function restartPolicyErrors({ restartPolicy }: Container, path: FieldPath): FieldError[] {
  return restartPolicy === undefined || RESTART_POLICIES.includes(restartPolicy)
    ? []
    : [notSupported([...path, "restartPolicy"], restartPolicy, RESTART_POLICIES)];
}

export function ephemeralContainerErrors(container: Container, path: FieldPath): FieldError[] {
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
