import type { Extensible, ObjectMeta } from "./api-object.ts";

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

export type NetworkingObject = Ingress | IngressClass;

/** Forbidden unescaped in a path, but common in paths for other controllers. */
const REGULAR_EXPRESSION = /[\\^$*()[\]{}|?]|\.\+/;

/**
 * Whether an ImplementationSpecific path looks like another controller's pattern; it is matched
 * literally here.
 */
export function isRegularExpression(path: string, pathType: string | undefined): boolean {
  return pathType !== "Exact" && pathType !== "Prefix" && REGULAR_EXPRESSION.test(path);
}
