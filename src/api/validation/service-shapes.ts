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
