import type { FieldPath } from "../../config/yaml-documents.ts";
import { duplicate, type FieldError, invalidValue, notSupported, required } from "../field-errors.ts";
import type { Container, ContainerPort, Pod } from "../objects.ts";
import { labelProblems, portNameProblems, portNumberProblems, subdomainProblems } from "./name-rules.ts";
import { validateMetadata } from "./validate-metadata.ts";

const RESTART_POLICIES = ["Always", "OnFailure", "Never"];
const PROTOCOLS = ["TCP", "UDP", "SCTP"];
const POD_PHASES = ["Pending", "Running", "Succeeded", "Failed", "Unknown"];

/** What the API server checks of the fields that Sluice reads. Expects a value of the Pod's shape, with its namespace set. */
export function validatePod({ metadata, spec, status }: Pod): FieldError[] {
  const {
    containers = [],
    initContainers = [],
    ephemeralContainers = [],
    nodeName = "",
    restartPolicy,
  } = spec;
  const names = new Set<string>();
  const phase = status?.phase;
  return [
    ...validateMetadata(metadata, { isNamespaced: true, nameProblems: subdomainProblems }),
    ...(containers.length === 0 ? [required(["spec", "containers"])] : []),
    ...containerErrors(containers, ["spec", "containers"], names),
    ...containerErrors(initContainers, ["spec", "initContainers"], names),
    ...containerErrors(ephemeralContainers, ["spec", "ephemeralContainers"], names),
    ...unsupported(["spec", "restartPolicy"], restartPolicy, RESTART_POLICIES),
    ...(nodeName === "" ? [] : subdomainProblems(nodeName)).map((problem) =>
      invalidValue(["spec", "nodeName"], nodeName, problem),
    ),
    ...unsupported(["status", "phase"], phase, POD_PHASES),
  ];
}

/** `names`: those of the pod's containers so far, of every sort: exec chooses among all of them by name. */
function containerErrors(
  containers: readonly Container[],
  path: FieldPath,
  names: Set<string>,
): FieldError[] {
  return containers.flatMap((container, index) => {
    const { name = "", image = "", ports = [] } = container ?? {};
    const namePath = [...path, index, "name"];
    const isTaken = name !== "" && names.has(name);
    names.add(name);
    return [
      ...(name === "" ? [required(namePath)] : []),
      ...(name === "" ? [] : labelProblems(name)).map((problem) => invalidValue(namePath, name, problem)),
      ...(isTaken ? [duplicate(namePath, name)] : []),
      ...imageErrors(image, [...path, index, "image"]),
      ...portErrors(ports, [...path, index, "ports"]),
    ];
  });
}

function imageErrors(image: string, path: FieldPath): FieldError[] {
  if (image === "") return [required(path)];
  return image === image.trim()
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
      ...unsupported(at("protocol"), protocol, PROTOCOLS),
    ];
  });
}

function rangeErrors(path: FieldPath, port: number): FieldError[] {
  return portNumberProblems(port).map((problem) => invalidValue(path, port, problem));
}

/** Absent and empty values are defaulted before Kubernetes validates, so only a given one can be wrong. */
function unsupported(path: FieldPath, value: string | undefined, supported: readonly string[]): FieldError[] {
  return value === undefined || value === "" || supported.includes(value)
    ? []
    : [notSupported(path, value, supported)];
}
