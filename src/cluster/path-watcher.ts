import { watch } from "node:fs";
import path from "node:path";

/** Calls `onChange` when something at the paths may have changed, perhaps too often, until the returned function is called. */
export type WatchPaths = (paths: readonly string[], events: WatchEvents) => () => void;

export interface WatchEvents {
  onChange(): void;
  /** The paths are no longer watched. */
  onError(error: Error): void;
}

/**
 * Watches folders only, for a file the one it lies in: editors and mounted ConfigMaps replace files instead of writing them, and a
 * watch on the file would stay with the old one.
 */
export const watchFolders: WatchPaths = (paths, { onChange, onError }) => {
  const folders = new Set(paths.flatMap((given) => [given, path.dirname(path.resolve(given))]));
  const watchers = [...folders].map((folder) => {
    const watcher = watch(folder, { persistent: false });
    watcher.on("change", onChange);
    watcher.on("error", onError);
    return watcher;
  });
  return () => {
    for (const watcher of watchers) watcher.close();
  };
};
