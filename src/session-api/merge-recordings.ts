import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import { keyOf, type RecordingsPage } from "./folder-recordings.ts";
import { compareKeys, type ObjectKey } from "./polled-feed.ts";
import type { RecordingObject } from "./recording-object.ts";

interface MergedPage extends RecordingsPage {
  /** False if replicas share a folder: `remaining` then counts recordings more than once. */
  readonly isExact: boolean;
}

/** The first page of one folder's recordings. `limit` 0: no limit. */
export function firstPageOf(
  all: readonly RecordingObject[],
  matches: (recording: RecordingObject) => boolean,
  limit: number,
): RecordingsPage {
  const items = all.filter(matches);
  return limit === 0
    ? { items, remaining: 0 }
    : { items: items.slice(0, limit), remaining: Math.max(0, items.length - limit) };
}

/**
 * Merges pages of several folders into one, each recording once. `limit` 0: no limit; otherwise
 * each given page is complete up to it.
 */
export function mergePages(pages: readonly RecordingsPage[], limit: number): MergedPage {
  const all = pages.flatMap(({ items }) => items);
  all.sort((one, other) => compareKeys(keyOf(one), keyOf(other)));
  const once = all.filter((each, index) => !isSame(each, all[index - 1]));
  const items = limit === 0 ? once : once.slice(0, limit);
  const behind = pages.reduce((sum, { remaining }) => sum + remaining, 0);
  return {
    items,
    remaining: once.length - items.length + behind,
    isCut: pages.some(({ isCut = false }) => isCut),
    isExact: once.length === all.length,
  };
}

function isSame(one: RecordingObject, other: RecordingObject | undefined): boolean {
  return other !== undefined && compareKeys(keyOf(one), keyOf(other)) === 0;
}

/** The contents of a `continue` parameter. All pages of a list have the same version. */
interface Continue {
  readonly after: ObjectKey;
  /** Undefined from an older release. */
  readonly version: number | undefined;
}

export function tokenOf({ after, version }: Continue): string {
  return Buffer.from(JSON.stringify({ v: "sluice.dev/recordings", ...after, rv: version })).toString(
    "base64url",
  );
}

/** Undefined for an empty token. Throws StatusError 400. */
export function readToken(token: string): Continue | undefined {
  if (token === "") return undefined;
  try {
    const { v, namespace, id, rv } = JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
    if (v === "sluice.dev/recordings" && typeof namespace === "string" && typeof id === "string")
      return { after: { namespace, id }, version: Number.isSafeInteger(rv) ? rv : undefined };
  } catch {
    // Falls through to the error.
  }
  throw WIRE_ERRORS["continue-invalid"].streaming();
}
