import {
  COORDINATION_API_VERSION,
  DISCOVERY_API_VERSION,
  type EndpointSlice,
  type Lease,
  type Secret,
  type Service,
} from "../service-objects.ts";
import { endpointSliceShape, leaseShape, secretShape, serviceShape } from "../validation/service-shapes.ts";
import { secretWarnings, validateLease, validateSecret } from "../validation/validate-secret.ts";
import { validateEndpointSlice, validateService } from "../validation/validate-service.ts";
import { keepingStatus, plainStrategy } from "./plain-strategy.ts";

export const serviceStrategy = plainStrategy<Service>({
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

export const endpointSliceStrategy = plainStrategy<EndpointSlice>({
  kind: "EndpointSlice",
  apiVersion: DISCOVERY_API_VERSION,
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

export const secretStrategy = plainStrategy<Secret>({
  kind: "Secret",
  apiVersion: "v1",
  resource: "secrets",
  isNamespaced: true,
  shape: secretShape,
  withDefaults: withSecretDefaults,
  validate: validateSecret,
  warnings: secretWarnings,
});

export const leaseStrategy = plainStrategy<Lease>({
  kind: "Lease",
  apiVersion: COORDINATION_API_VERSION,
  resource: "leases",
  isNamespaced: true,
  shape: leaseShape,
  validate: validateLease,
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

/** `stringData` is write-only: its values override those in `data`. */
function withSecretDefaults({ stringData, ...secret }: Secret): Secret {
  const texts = Object.entries((stringData ?? {}) as Record<string, string>);
  const encoded = texts.map(([key, value]) => [key, Buffer.from(value).toString("base64")]);
  const data = { ...secret.data, ...Object.fromEntries(encoded) } as Record<string, string>;
  return {
    ...(secret as Secret),
    type: secret.type || "Opaque",
    ...((secret.data !== undefined || texts.length > 0) && { data }),
  };
}
