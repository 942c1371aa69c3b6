import { badRequest, resourceExpired } from "@sluice/client/internal/api/status";
import type { ApiObject } from "../api-object.ts";

/** One page of a list, and the token for the next page. */
interface ListPage {
  readonly objects: readonly ApiObject[];
  readonly metadata: {
    readonly resourceVersion: string;
    readonly continue?: string;
    readonly remainingItemCount?: number;
  };
}

/**
 * Cuts a list by the query's `limit` and `continue`. Throws StatusError 400 for invalid values, 410
 * for an outdated token.
 */
export function pageOf(
  objects: readonly ApiObject[],
  resourceVersion: number,
  query: URLSearchParams,
): ListPage {
  const limit = parseCount("limit", query.get("limit") || "0");
  const start = startOf(query.get("continue") || "", resourceVersion);
  const end = limit === 0 ? objects.length : start + limit;
  const remaining = Math.max(0, objects.length - end);
  return {
    objects: objects.slice(start, end),
    metadata: {
      resourceVersion: String(resourceVersion),
      ...(remaining > 0 && { continue: tokenOf(end, resourceVersion), remainingItemCount: remaining }),
    },
  };
}

/** Parses a query's number as Go's decoder does. Throws StatusError 400. */
export function parseCount(name: string, text: string): number {
  if (!/^\d{1,15}$/.test(text)) {
    throw badRequest(
      `invalid value for ${name}: strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`,
    );
  }
  return Number(text);
}

function tokenOf(start: number, resourceVersion: number): string {
  return Buffer.from(JSON.stringify({ v: "sluice.dev/v1", rv: resourceVersion, start })).toString(
    "base64url",
  );
}

/**
 * Only the present state exists, so an older token could skip or repeat objects; the client must
 * list again.
 */
function startOf(token: string, resourceVersion: number): number {
  if (token === "") return 0;
  const { rv, start } = decodeToken(token);
  if (rv === resourceVersion) return start;
  throw resourceExpired(
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
  );
}

function decodeToken(token: string): { rv: number; start: number } {
  try {
    const { v, rv, start } = JSON.parse(Buffer.from(token, "base64url").toString()) as Record<
      string,
      unknown
    >;
    if (
      v === "sluice.dev/v1" &&
      Number.isSafeInteger(rv) &&
      Number.isSafeInteger(start) &&
      Number(start) >= 0
    ) {
      return { rv: Number(rv), start: Number(start) };
    }
  } catch {
    // Refused below, like every token that this server did not issue.
  }
  throw badRequest("continue key is not valid: it was not given out by this server");
}
