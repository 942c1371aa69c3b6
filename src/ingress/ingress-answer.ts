import { genericError, type StatusError, statusBody } from "@sluice/client/internal/api/status";
import type { HeaderEdit } from "@sluice/client/internal/http/header-edit";
import { type HeaderLine, type HeaderList, headerTokens } from "@sluice/client/internal/http/header-list";
import type { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";

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

export function ingressAnswer(
  { code: status, message }: StatusError,
  requestHeaders: HeaderList,
): IngressAnswer {
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

/** Names the protocol that the gateway expected when the backend answered in another. */
const SPEAKS = { "HTTP/1": "HTTP/2", "HTTP/2": "HTTP/1.1", TLS: "HTTP without TLS" } as const;

/** The refusal for a failed exchange; it does not reveal backend addresses. */
export function upstreamRefusal({ code, spoken }: UpstreamError): StatusError {
  return code === "malformed-response" && spoken !== undefined
    ? WIRE_ERRORS["other-protocol"].ingress({ protocol: SPEAKS[spoken] })
    : WIRE_ERRORS[code].ingress();
}
