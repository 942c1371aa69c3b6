import { metadataShape } from "./object-shapes.ts";
import { int32, intOrString, listOf, named, type Shape, struct, text, texts } from "./shape.ts";

/**
 * Services and related objects, with their types from k8s.io/api/core/v1, discovery/v1 and
 * coordination/v1.
 */
const head = { apiVersion: text, kind: text, metadata: metadataShape };

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
