import { statSync, watch } from "node:fs";
import path from "node:path";

/** Calls `onChange` when something at the paths may have changed, perhaps too often, until the returned function is called. */
export type WatchPaths = (paths: readonly string[], events: WatchEvents) => () => void;

export interface WatchEvents {
  onChange(): void;
  /** The paths are no longer watched. */
  onError(error: Error): void;
}

/**
 * Watches folders, for a file its own: editors and mounted ConfigMaps replace files, and a watch on a file stays with the old one. A
 * missing path is not watched; reading it fails.
 */
export const watchFolders: WatchPaths = (paths, { onChange, onError }) => {
  const watchers = paths.flatMap((given) => {
    const parent = path.dirname(path.resolve(given));
    const aboutGiven = (name: string | null) =>
      // The second name is the link that a mounted ConfigMap's files go through; its swap is the edit.
      name === null || name === path.basename(given) || name === "..data";
    return [
      ...(isFolder(given) ? [watchFolder(given, () => true)] : []),
      ...(isFolder(parent) ? [watchFolder(parent, aboutGiven)] : []),
    ];
  });
  for (const { watcher, isRelevant } of watchers) {
    watcher.on("change", (_, name) => {
      if (isRelevant(typeof name === "string" ? name : null)) onChange();
    });
    watcher.on("error", onError);
  }
  return () => {
    for (const { watcher } of watchers) watcher.close();
  };
};

function watchFolder(folder: string, isRelevant: (name: string | null) => boolean) {
  return { watcher: watch(folder, { persistent: false }), isRelevant };
}

function isFolder(name: string): boolean {
  return statSync(name, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
