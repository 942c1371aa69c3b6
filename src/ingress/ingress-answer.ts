import { genericError, statusBody } from "@sluice/client/internal/api/status";
import type { HeaderEdit } from "@sluice/client/internal/http/header-edit";
import { type HeaderLine, type HeaderList, headerTokens } from "@sluice/client/internal/http/header-list";
import type { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import type { EndpointProblem } from "./service-endpoints.ts";

const SERVER_NAME = "sluice";

/** An answer from the gateway itself: a line of text, or a Status for clients that ask for JSON. */
export interface IngressAnswer {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: Buffer;
}

const REASONS: Readonly<Record<number, string>> = {
  308: "Permanent Redirect",
  400: "Bad Request",
  404: "Not Found",
  408: "Request Timeout",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

export function reasonPhrase(status: number): string {
  return REASONS[status] ?? "Unknown";
}

export function ingressAnswer(status: number, message: string, requestHeaders: HeaderList): IngressAnswer {
  const accepted = headerTokens(requestHeaders, "accept").map((type) => type.split(";")[0]?.trim());
  const isJson = accepted.includes("application/json");
  const body = Buffer.from(
    isJson
      ? statusBody(genericError(status, message).status)
      : `${status} ${reasonPhrase(status)}: ${message}\n`,
  );
  return {
    status,
    body,
    headers: [
      ["Content-Type", isJson ? "application/json" : "text/plain; charset=utf-8"],
      ["X-Content-Type-Options", "nosniff"],
      ["Content-Length", String(body.byteLength)],
      ...ownLines(),
    ],
  };
}

/** Redirects to the same host and target over https, with the client's default port. */
export function tlsRedirect(host: string, target: string): IngressAnswer {
  const headers: HeaderLine[] = [
    ["Location", `https://${host}${target}`],
    ["Content-Length", "0"],
  ];
  return { status: 308, headers: [...headers, ...ownLines()], body: Buffer.alloc(0) };
}

/** Adds `Server` and `Date` if the backend sent none. */
export function addOwnLines(edit: HeaderEdit): void {
  if (!edit.has("server")) edit.add("Server", SERVER_NAME);
  if (!edit.has("date")) edit.add("Date", new Date().toUTCString());
}

function ownLines(): HeaderLine[] {
  return [
    ["Server", SERVER_NAME],
    ["Date", new Date().toUTCString()],
  ];
}

/**
 * Status and text for a Service without a usable endpoint. Visitors do not see the operator's
 * names.
 */
export const ENDPOINT_PROBLEMS: Readonly<
  Record<EndpointProblem | "no-endpoints" | "endpoints-refused", string>
> = {
  "no-service": "the service of this route does not exist",
  "no-such-port": "the service of this route has no such port",
  "external-name": "the service of this route is an external name, which is not served",
  "no-authority": "the certificate authority for the service of this route is not known",
  "endpoints-refused": "the endpoints of this route's service have addresses that may not be dialled",
  "no-endpoints": "the service of this route has no ready endpoints",
};

/** Names the protocol that the gateway expected when the backend answered in another. */
const SPEAKS = { "HTTP/1": "HTTP/2", "HTTP/2": "HTTP/1.1", TLS: "HTTP without TLS" } as const;

/** The answer for a failed exchange; it does not reveal backend addresses. */
export function upstreamProblem({ code, spoken }: UpstreamError): { status: number; message: string } {
  switch (code) {
    case "response-timeout":
      return { status: 504, message: "the backend did not answer in time" };
    case "invalid-request":
    case "upgrade-refused":
      return { status: 400, message: "the request cannot be forwarded" };
    case "request-timeout":
      return { status: 408, message: "the request's body did not come in time" };
    case "internal-error":
      return { status: 500, message: "the gateway failed to handle the request" };
    case "dial-failed":
      return { status: 502, message: "no endpoint of the service could be reached" };
    default:
      return {
        status: 502,
        message: `the backend ${spoken === undefined ? "gave no valid answer" : `does not speak ${SPEAKS[spoken]}`}`,
      };
  }
}
