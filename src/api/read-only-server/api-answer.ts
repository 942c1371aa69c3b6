import { goJson } from "@sluice/client/internal/api/go-json";
import { NEVER_CACHED } from "@sluice/client/internal/api/status-body";
import type { ApiObject } from "../api-object.ts";

/** A change of a served object. */
export interface SourceChange {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: ApiObject;
  /** The replaced object; a watch with a selector needs it to see an object leave. */
  readonly previous?: ApiObject;
  readonly resourceVersion: number;
}

/** The read-only API's objects, from memory. */
export interface ObjectSource {
  /** The namespace of a cluster-scoped kind is "". */
  get(kind: string, namespace: string, name: string): ApiObject | undefined;
  list(kind: string, namespace?: string): readonly ApiObject[];
  readonly resourceVersion: number;
  subscribe(listener: () => void): () => void;
  /** Undefined if some of the changes are forgotten. */
  changesAfter(resourceVersion: number): readonly SourceChange[] | undefined;
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
