import { keyOf, type RecordingsPage } from "./folder-recordings.ts";
import { compareKeys } from "./polled-feed.ts";
import type { RecordingObject } from "./recording-object.ts";

interface MergedPage extends RecordingsPage {
  /** False if replicas share a folder: what remains is counted more than once. */
  readonly isExact: boolean;
}

/** The first page of what one folder has. `limit`: 0 is none. */
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

/** One page of what several folders have, each recording once. `limit`: 0 is none; each page goes that far. */
export function mergePages(pages: readonly RecordingsPage[], limit: number): MergedPage {
  const all = pages.flatMap(({ items }) => items);
  all.sort((one, other) => compareKeys(keyOf(one), keyOf(other)));
  const once = all.filter((each, index) => !isSame(each, all[index - 1]));
  const items = limit === 0 ? once : once.slice(0, limit);
  const behind = pages.reduce((sum, { remaining }) => sum + remaining, 0);
  return {
    items,
    remaining: once.length - items.length + behind,
    isExact: once.length === all.length,
  };
}

function isSame(one: RecordingObject, other: RecordingObject | undefined): boolean {
  return other !== undefined && compareKeys(keyOf(one), keyOf(other)) === 0;
}
