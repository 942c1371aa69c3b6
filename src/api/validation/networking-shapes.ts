import { metadataShape } from "./object-shapes.ts";
import {
  flag,
  int32,
  intOrString,
  listOf,
  named,
  type Shape,
  struct,
  text,
  textMap,
  texts,
} from "./shape.ts";

/**
 * Services and related objects, with their types from k8s.io/api/core/v1, discovery/v1 and
 * coordination/v1.
 */
const head = { apiVersion: text, kind: text, metadata: metadataShape };
/** JSON encodes Go's []byte as base64. */
const bytesMap: Shape = { json: "map", go: "map[string][]uint8", values: { json: "string", go: "[]uint8" } };

export const serviceShape = struct("Service", {
  ...head,
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

export const endpointSliceShape = struct(
  "EndpointSlice",
  {
    ...head,
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

export const secretShape = struct("Secret", {
  ...head,
  type: named("SecretType"),
  data: bytesMap,
  stringData: textMap,
  immutable: flag,
});

export const leaseShape = struct("Lease", {
  ...head,
  spec: struct("LeaseSpec", {
    holderIdentity: text,
    leaseDurationSeconds: int32,
    acquireTime: text,
    renewTime: text,
    leaseTransitions: int32,
  }),
});

const resource = struct("TypedLocalObjectReference", { apiGroup: text, kind: text, name: text }, [
  "kind",
  "name",
]);

const backend = struct("IngressBackend", {
  service: struct(
    "IngressServiceBackend",
    {
      name: text,
      port: struct("ServiceBackendPort", { name: text, number: int32 }),
    },
    ["name"],
  ),
  resource,
});

const backendV1beta1 = struct("IngressBackend", { serviceName: text, servicePort: intOrString, resource });

const tls = listOf(struct("IngressTLS", { hosts: texts, secretName: text }));

const status = struct("IngressStatus", {
  loadBalancer: struct("IngressLoadBalancerStatus", {
    ingress: listOf(
      struct("IngressLoadBalancerIngress", {
        ip: text,
        hostname: text,
        ports: listOf(
          struct("IngressPortStatus", { port: int32, protocol: named("Protocol"), error: text }, [
            "port",
            "protocol",
          ]),
        ),
      }),
    ),
  }),
});

export const ingressShape = struct("Ingress", {
  ...head,
  spec: struct("IngressSpec", {
    ingressClassName: text,
    defaultBackend: backend,
    tls,
    rules: rulesOf(backend, "v1"),
  }),
  status,
});

export const ingressV1beta1Shape = struct("Ingress", {
  ...head,
  spec: struct("IngressSpec", {
    ingressClassName: text,
    backend: backendV1beta1,
    tls,
    rules: rulesOf(backendV1beta1, "v1beta1"),
  }),
  status,
});

export const ingressClassShape = struct("IngressClass", {
  ...head,
  spec: struct("IngressClassSpec", {
    controller: text,
    parameters: struct(
      "IngressClassParametersReference",
      {
        apiGroup: text,
        kind: text,
        name: text,
        scope: text,
        namespace: text,
      },
      ["kind", "name"],
    ),
  }),
});

function rulesOf(backendShape: Shape, version: "v1" | "v1beta1"): Shape {
  const pathType: Shape = { json: "string", go: `${version}.PathType` };
  const paths = listOf(
    struct("HTTPIngressPath", { path: text, pathType, backend: backendShape }, ["backend"]),
  );
  return listOf(
    struct("IngressRule", { host: text, http: struct("HTTPIngressRuleValue", { paths }, ["paths"]) }, [], {
      http: "IngressRuleValue",
    }),
  );
}
