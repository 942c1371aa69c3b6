import { keyOf, type RecordingsPage } from "./folder-recordings.ts";
import type { RecordingObject } from "./recording-object.ts";
import { compareKeys } from "./polled-feed.ts";

interface MergedPage extends RecordingsPage {
  /** False if replicas share a folder: what remains is counted more than once. */
  readonly isExact: boolean;
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
    version: pages.reduce((latest, { version }) => Math.max(latest, version), 0),
  };
}

function isSame(one: RecordingObject, other: RecordingObject | undefined): boolean {
  return other !== undefined && compareKeys(keyOf(one), keyOf(other)) === 0;
}
