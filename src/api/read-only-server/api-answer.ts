import { goJson } from "@sluice/client/internal/api/go-json";
import {
  NEVER_CACHED,
  type StatusError,
  statusBody,
  statusHeaders,
} from "@sluice/client/internal/api/status";

export interface ApiRequest {
  readonly method: string;
  /** Without query, percent-encoded as received. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** The Accept header; empty if absent. */
  readonly accept: string;
}

export interface ApiAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** A watch's body is endless: the caller must return its iterator when the client leaves. */
  readonly body: Uint8Array | AsyncIterable<Uint8Array>;
}

export function jsonAnswer(value: unknown, contentType = "application/json"): ApiAnswer {
  return {
    status: 200,
    headers: { ...NEVER_CACHED, "Content-Type": contentType },
    body: jsonLine(value),
  };
}

/** A value as the API server sends it, alone or as a watch event. */
export function jsonLine(value: unknown): Uint8Array {
  return new TextEncoder().encode(`${goJson(value)}\n`);
}

export function textAnswer(status: number, text: string): ApiAnswer {
  return {
    status,
    headers: {
      ...NEVER_CACHED,
      "Content-Type": "text/plain; charset=utf-8",
      "X-Content-Type-Options": "nosniff",
    },
    body: new TextEncoder().encode(text),
  };
}

export function statusAnswer({ status }: StatusError): ApiAnswer {
  return { status: status.code, headers: statusHeaders(status), body: statusBody(status) };
}
