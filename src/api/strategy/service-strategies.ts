import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import { duplicate, type FieldError, invalidValue, notSupported, required } from "../field-errors.ts";
import type { Endpoint, EndpointPort, EndpointSlice, Service, ServicePort } from "../networking-objects.ts";
import {
  isLenientIP,
  labelProblems,
  NOT_AN_IP,
  portNameProblems,
  portNumberProblems,
  serviceNameProblems,
  subdomainProblems,
} from "../validation/name-rules.ts";
import { metadataShape } from "../validation/object-shapes.ts";
import {
  flag,
  int32,
  intOrString,
  listOf,
  named,
  struct,
  text,
  textMap,
  texts,
} from "../validation/shape.ts";
import type { BackendRules } from "../validation/validate-ingress-backend.ts";
import { validateMetadata } from "../validation/validate-metadata.ts";
import { keepingStatus, plainStrategy, type Strategy } from "./strategy.ts";

const serviceShape = struct("Service", {
  apiVersion: text,
  kind: text,
  metadata: metadataShape,
  spec: struct("ServiceSpec", {
    type: named("ServiceType"),
    clusterIP: text,
    clusterIPs: texts,
    externalName: text,
    selector: textMap,
    sessionAffinity: named("ServiceAffinity"),
    publishNotReadyAddresses: flag,
    ports: listOf(
      struct(
        "ServicePort",
        {
          name: text,
          port: int32,
          targetPort: intOrString,
          protocol: named("Protocol"),
          appProtocol: text,
          nodePort: int32,
        },
        ["port"],
      ),
    ),
  }),
});

const endpointSliceShape = struct(
  "EndpointSlice",
  {
    apiVersion: text,
    kind: text,
    metadata: metadataShape,
    addressType: named("AddressType"),
    endpoints: listOf(
      struct(
        "Endpoint",
        {
          addresses: texts,
          conditions: struct("EndpointConditions", { ready: flag, serving: flag, terminating: flag }),
          hostname: text,
          nodeName: text,
          zone: text,
          targetRef: struct("ObjectReference", { kind: text, namespace: text, name: text }),
        },
        ["addresses"],
      ),
    ),
    ports: listOf(
      struct("EndpointPort", { name: text, port: int32, protocol: named("Protocol"), appProtocol: text }),
    ),
  },
  ["addressType"],
);

const serviceStrategy = plainStrategy<Service>({
  kind: "Service",
  apiVersion: "v1",
  resource: "services",
  isNamespaced: true,
  shape: serviceShape,
  withDefaults: withServiceDefaults,
  validate: (service) => validateService(service, { allowsRelaxedServiceNames: true }),
  validateCreate: (service, gates) => {
    const allowsRelaxedServiceNames = gates.isEnabled("RelaxedServiceNameValidation");
    return validateService(service, { allowsRelaxedServiceNames });
  },
  prepareForCreate: ({ status: _, ...service }) => ({ ...service, status: { loadBalancer: {} } }),
  prepareForUpdate: keepingStatus,
});

function withServiceDefaults(service: Service): Service {
  const { spec = {} } = service;
  const ports = spec.ports?.map((port) => ({
    ...port,
    protocol: port.protocol || "TCP",
    // Go treats an empty name and 0 as absent.
    targetPort: port.targetPort || port.port || 0,
  }));
  return {
    ...service,
    spec: {
      ...spec,
      type: spec.type || "ClusterIP",
      sessionAffinity: spec.sessionAffinity || "None",
      ...(ports && { ports }),
    },
  };
}

const endpointSliceStrategy = plainStrategy<EndpointSlice>({
  kind: "EndpointSlice",
  apiVersion: "discovery.k8s.io/v1",
  resource: "endpointslices",
  isNamespaced: true,
  shape: endpointSliceShape,
  withDefaults: (slice) =>
    slice.ports === undefined
      ? slice
      : {
          ...slice,
          ports: slice.ports.map((port) => ({
            ...port,
            name: port.name ?? "",
            protocol: port.protocol || "TCP",
          })),
        },
  validate: validateEndpointSlice,
});

/** Services, and the endpoints behind them. */
export const serviceStrategies: readonly Strategy[] = [serviceStrategy, endpointSliceStrategy];

const SERVICE_TYPES = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

const PROTOCOLS = ["SCTP", "TCP", "UDP"];

const ADDRESS_TYPES = ["FQDN", "IPv4", "IPv6"];

/** Limits of discovery.k8s.io. */
const MAX_ENDPOINTS_OF_SLICE = 1_000;

const MAX_ADDRESSES_OF_ENDPOINT = 100;

/** The API server's checks of the Service fields that routing reads. */
function validateService(
  { metadata, spec = {} }: Service,
  { allowsRelaxedServiceNames }: BackendRules,
): FieldError[] {
  const nameProblems = allowsRelaxedServiceNames ? labelProblems : serviceNameProblems;
  const { type = "ClusterIP", clusterIP, externalName, ports = [] } = spec;
  const needsPorts = type !== "ExternalName" && clusterIP !== "None";
  const ownPath = ["spec", "ports"];
  return [
    ...validateMetadata(metadata, { isNamespaced: true, nameProblems }),
    ...(ports.length === 0 && needsPorts ? [required(ownPath)] : []),
    ...(type === "ExternalName" ? externalNameErrors(externalName) : []),
    ...ports.flatMap((port, index) => servicePortErrors(port, [...ownPath, index], ports.length > 1)),
    ...(SERVICE_TYPES.includes(type) ? [] : [notSupported(["spec", "type"], type, SERVICE_TYPES)]),
    ...duplicateErrors(
      ports.map(({ name }) => name || undefined),
      (index) => [...ownPath, index, "name"],
    ),
  ];
}

function externalNameErrors(externalName = ""): FieldError[] {
  const path = ["spec", "externalName"];
  const name = externalName.replace(/\.$/, "");
  if (name === "") return [required(path)];
  return subdomainProblems(name).map((problem) => invalidValue(path, externalName, problem));
}

function servicePortErrors(given: ServicePort, path: FieldPath, needsName: boolean): FieldError[] {
  const { name = "", port = 0, targetPort, protocol = "TCP" } = given ?? {};
  return [
    ...(name === "" && needsName ? [required([...path, "name"])] : []),
    ...(name === ""
      ? []
      : labelProblems(name).map((problem) => invalidValue([...path, "name"], name, problem))),
    ...portNumberProblems(port).map((problem) => invalidValue([...path, "port"], port, problem)),
    ...(PROTOCOLS.includes(protocol) ? [] : [notSupported([...path, "protocol"], protocol, PROTOCOLS)]),
    ...targetPortProblems(targetPort).map((problem) =>
      invalidValue([...path, "targetPort"], targetPort, problem),
    ),
  ];
}

function targetPortProblems(targetPort: number | string | undefined): string[] {
  if (targetPort === undefined) return [];
  return typeof targetPort === "string" ? portNameProblems(targetPort) : portNumberProblems(targetPort);
}

/** The API server's checks of the EndpointSlice fields that routing reads. */
function validateEndpointSlice(slice: EndpointSlice): FieldError[] {
  const { metadata, addressType = "", endpoints = [], ports = [] } = slice;
  return [
    ...validateMetadata(metadata, { isNamespaced: true, nameProblems: subdomainProblems }),
    ...ports.flatMap((port, index) => endpointPortErrors(port, ["ports", index])),
    ...duplicateErrors(
      ports.map((port) => port?.name ?? ""),
      (index) => ["ports", index, "name"],
    ),
    ...tooMany(endpoints, MAX_ENDPOINTS_OF_SLICE, ["endpoints"]),
    ...endpoints.flatMap((endpoint, index) => endpointErrors(endpoint, addressType, ["endpoints", index])),
    // Kubernetes declares these two checks on the types, and runs them last.
    ...addressTypeErrors(addressType),
    ...endpoints.flatMap((endpoint, index) =>
      (endpoint?.addresses ?? []).length === 0 ? [required(["endpoints", index, "addresses"])] : [],
    ),
  ];
}

function addressTypeErrors(addressType: string): FieldError[] {
  if (addressType === "") return [required(["addressType"])];
  return ADDRESS_TYPES.includes(addressType)
    ? []
    : [notSupported(["addressType"], addressType, ADDRESS_TYPES)];
}

function endpointErrors(given: Endpoint, addressType: string, path: FieldPath): FieldError[] {
  const { addresses = [] } = given ?? {};
  const addressesPath = [...path, "addresses"];
  return [
    ...tooMany(addresses, MAX_ADDRESSES_OF_ENDPOINT, addressesPath),
    ...addresses.flatMap((address, index) => addressErrors(address, addressType, addressesPath, index)),
  ];
}

/**
 * As in the API server, the error names the entry if it is not an address, and the list if its
 * address is of the other family.
 */
function addressErrors(address: string, type: string, path: FieldPath, index: number): FieldError[] {
  const at = [...path, index];
  if (type === "FQDN")
    return subdomainProblems(address.replace(/\.$/, "")).map((problem) => invalidValue(at, address, problem));
  if (type !== "IPv4" && type !== "IPv6") return [];
  if (!isLenientIP(address)) return [invalidValue(at, address, NOT_AN_IP)];
  const isOfType = address.includes(":") === (type === "IPv6");
  return isOfType ? [] : [invalidValue(path, address, `must be an ${type} address`)];
}

function endpointPortErrors(given: EndpointPort, path: FieldPath): FieldError[] {
  const { name = "", port, protocol = "TCP" } = given ?? {};
  return [
    ...(name === ""
      ? []
      : labelProblems(name).map((problem) => invalidValue([...path, "name"], name, problem))),
    ...(PROTOCOLS.includes(protocol) ? [] : [notSupported([...path, "protocol"], protocol, PROTOCOLS)]),
    ...(port === undefined ? [] : portNumberProblems(port)).map((problem) =>
      invalidValue([...path, "port"], port, problem),
    ),
  ];
}

function tooMany(items: readonly unknown[], max: number, path: FieldPath): FieldError[] {
  if (items.length <= max) return [];
  return [invalidValue(path, items.length, `must have at most ${max} items`)];
}

function duplicateErrors(
  names: readonly (string | undefined)[],
  pathOf: (index: number) => FieldPath,
): FieldError[] {
  return names.flatMap((name, index) =>
    name !== undefined && names.indexOf(name) < index ? [duplicate(pathOf(index), name)] : [],
  );
}
