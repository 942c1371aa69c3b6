import { genericError } from "@sluice/client/internal/api/status";
import type { WireError } from "./wire-error.ts";

const unavailable = (text: string) => () => genericError(503, text);

/** Answers of an Ingress alone. Visitors see no name of the operator's and no address. */
export const ROUTE_ERRORS = {
  "host-twice": {
    cause: "The request has several Host headers",
    ingress: () => genericError(400, "more than one Host header"),
  },
  "host-missing": {
    cause: "The request has no Host header",
    ingress: () => genericError(400, "missing Host header"),
  },
  "host-malformed": {
    cause: "The Host header names no host",
    ingress: () => genericError(400, "malformed Host header"),
  },
  "other-protocol": {
    cause: "The backend answers in another protocol than the Service declares",
    ingress: ({ protocol }: { protocol: string }) =>
      genericError(502, `the backend does not speak ${protocol}`),
  },
  "no-service": {
    cause: "The route's Service does not exist",
    ingress: unavailable("the service of this route does not exist"),
  },
  "no-such-port": {
    cause: "The Service has no such port",
    ingress: unavailable("the service of this route has no such port"),
  },
  "external-name": {
    cause: "The Service is an external name",
    ingress: unavailable("the service of this route is an external name, which is not served"),
  },
  "no-authority": {
    cause: "The authority of the Service's certificates is not known",
    ingress: unavailable("the certificate authority for the service of this route is not known"),
  },
  "endpoints-refused": {
    cause: "The endpoints' addresses may not be dialled",
    ingress: unavailable("the endpoints of this route's service have addresses that may not be dialled"),
  },
  "no-endpoints": {
    cause: "The Service has no ready endpoint",
    ingress: unavailable("the service of this route has no ready endpoints"),
  },
  "streaming-gateway-silent": {
    cause: "The route's StreamingGateway fails its health checks",
    ingress: unavailable("this streaming gateway does not answer"),
  },
  "streaming-gateway-unknown": {
    cause: "The route's StreamingGateway is not configured",
    ingress: unavailable("this streaming gateway is not configured"),
  },
} as const satisfies Record<string, WireError>;
