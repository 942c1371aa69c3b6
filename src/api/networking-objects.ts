import type { Extensible, ObjectMeta } from "./api-object.ts";

/** A stable name and port in front of pods. */
export interface Service extends Extensible {
  readonly apiVersion: "v1";
  readonly kind: "Service";
  readonly metadata: ObjectMeta;
  readonly spec?: ServiceSpec;
  readonly status?: Extensible;
}

interface ServiceSpec extends Extensible {
  /** `ClusterIP`, `NodePort`, `LoadBalancer` or `ExternalName`. */
  readonly type?: string;
  /** `None` for a headless Service. */
  readonly clusterIP?: string;
  readonly clusterIPs?: readonly string[];
  readonly externalName?: string;
  readonly selector?: Readonly<Record<string, string>>;
  readonly ports?: readonly ServicePort[];
  readonly publishNotReadyAddresses?: boolean;
}

export interface ServicePort extends Extensible {
  /** Empty or absent only if there is a single port. */
  readonly name?: string;
  readonly port: number;
  /** The pods' port, by number or container port name; defaults to `port`. */
  readonly targetPort?: number | string;
  readonly protocol?: string;
  readonly appProtocol?: string;
  readonly nodePort?: number;
}

/** The label that names an EndpointSlice's Service. */
export const SERVICE_NAME_LABEL = "kubernetes.io/service-name";

/** Some of a Service's addresses. */
export interface EndpointSlice extends Extensible {
  readonly apiVersion: "discovery.k8s.io/v1";
  readonly kind: "EndpointSlice";
  readonly metadata: ObjectMeta;
  /** `IPv4`, `IPv6` or `FQDN`. */
  readonly addressType: string;
  readonly endpoints?: readonly Endpoint[];
  readonly ports?: readonly EndpointPort[];
}

export interface Endpoint extends Extensible {
  readonly addresses: readonly string[];
  /** An absent condition counts as true, except `terminating`. */
  readonly conditions?: {
    readonly ready?: boolean;
    readonly serving?: boolean;
    readonly terminating?: boolean;
  };
  readonly hostname?: string;
  readonly nodeName?: string;
  readonly zone?: string;
  readonly targetRef?: Extensible & { readonly kind?: string; readonly name?: string; readonly uid?: string };
}

export interface EndpointPort extends Extensible {
  /** The Service port's name. */
  readonly name?: string;
  /** Absent means every port of the address. */
  readonly port?: number;
  readonly protocol?: string;
  readonly appProtocol?: string;
}

export const TLS_SECRET_TYPE = "kubernetes.io/tls";

export interface Secret extends Extensible {
  readonly apiVersion: "v1";
  readonly kind: "Secret";
  readonly metadata: ObjectMeta;
  readonly type?: string;
  /** Base64 values. */
  readonly data?: Readonly<Record<string, string>>;
  readonly immutable?: boolean;
}

export interface Lease extends Extensible {
  readonly apiVersion: "coordination.k8s.io/v1";
  readonly kind: "Lease";
  readonly metadata: ObjectMeta;
  readonly spec?: LeaseSpec;
}

export interface LeaseSpec extends Extensible {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  /** RFC 3339 with microseconds. */
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

export const NETWORKING_API_VERSION = "networking.k8s.io/v1";

/**
 * Sluice's annotation: names a Secret in the Ingress's namespace whose `ca.crt` signed the
 * backends' certificates.
 */
export const BACKEND_CA_SECRET_ANNOTATION = "sluice.dev/backend-ca-secret";

export interface Ingress extends Extensible {
  readonly apiVersion: typeof NETWORKING_API_VERSION;
  readonly kind: "Ingress";
  readonly metadata: ObjectMeta;
  readonly spec?: IngressSpec;
  readonly status?: IngressStatus;
}

export interface IngressSpec extends Extensible {
  readonly ingressClassName?: string;
  /** Serves requests that no rule matches. */
  readonly defaultBackend?: IngressBackend;
  readonly tls?: readonly IngressTls[];
  readonly rules?: readonly IngressRule[];
}

export interface IngressTls extends Extensible {
  /** Absent or empty means every host. */
  readonly hosts?: readonly string[];
  readonly secretName?: string;
}

export interface IngressRule extends Extensible {
  /** Absent or empty means any host; the star in `*.example.com` stands for one label. */
  readonly host?: string;
  readonly http?: Extensible & { readonly paths: readonly IngressPath[] };
}

export interface IngressPath extends Extensible {
  readonly path?: string;
  /** `Exact`, `Prefix` or `ImplementationSpecific`. */
  readonly pathType?: string;
  readonly backend: IngressBackend;
}

/** Exactly one of the two is set. */
export interface IngressBackend extends Extensible {
  readonly service?: Extensible & {
    readonly name: string;
    readonly port?: Extensible & { readonly name?: string; readonly number?: number };
  };
  readonly resource?: Extensible & {
    readonly apiGroup?: string;
    readonly kind: string;
    readonly name: string;
  };
}

interface IngressStatus extends Extensible {
  readonly loadBalancer?: Extensible & { readonly ingress?: readonly IngressAddress[] };
}

export interface IngressAddress extends Extensible {
  readonly ip?: string;
  readonly hostname?: string;
  readonly ports?: readonly (Extensible & {
    readonly port: number;
    readonly protocol: string;
    readonly error?: string;
  })[];
}

/** Named an Ingress's class before there was a field. */
export const INGRESS_CLASS_ANNOTATION = "kubernetes.io/ingress.class";

/** Marks the class for Ingresses without one, if its value is exactly `true`. */
export const DEFAULT_CLASS_ANNOTATION = "ingressclass.kubernetes.io/is-default-class";

export interface IngressClass extends Extensible {
  readonly apiVersion: typeof NETWORKING_API_VERSION;
  readonly kind: "IngressClass";
  readonly metadata: ObjectMeta;
  readonly spec?: IngressClassSpec;
}

export interface IngressClassSpec extends Extensible {
  /** The controller that serves the class: `example.com/controller`. */
  readonly controller?: string;
  readonly parameters?: Extensible & {
    readonly apiGroup?: string;
    readonly kind: string;
    readonly name: string;
    readonly scope?: string;
    readonly namespace?: string;
  };
}

/** Forbidden unescaped in a path, but common in paths for other controllers. */
const REGULAR_EXPRESSION = /[\\^$*()[\]{}|?]|\.\+/;

/**
 * Whether an ImplementationSpecific path looks like another controller's pattern; it is matched
 * literally here.
 */
export function isRegularExpression(path: string, pathType: string | undefined): boolean {
  return pathType !== "Exact" && pathType !== "Prefix" && REGULAR_EXPRESSION.test(path);
}
