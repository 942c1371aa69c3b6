import { type FSWatcher, readdirSync, statSync, watch } from "node:fs";
import path from "node:path";

/** Calls `onChange` when something at the paths may have changed, perhaps too often, until the returned function is called. */
export type WatchPaths = (paths: readonly string[], events: WatchEvents) => () => void;

export interface WatchEvents {
  onChange(): void;
  /** The paths are no longer watched. */
  onError(error: Error): void;
}

/** Where the system watches no more folders (inotify has few instances for each user), paths are looked at so often. */
const LOOK_EVERY_MS = 5_000;

type Watch = (folder: string, options: { persistent: false }) => FSWatcher;

interface WatchMeans {
  readonly watch?: Watch;
  readonly lookEveryMs?: number;
}

/**
 * Watches folders, for a file its own: editors and mounted ConfigMaps replace files, and a watch on a file stays with the old one. A
 * missing path is not watched; reading it fails.
 */
export const watchFolders: WatchPaths = (paths, events) => watchPathsBy({}, paths, events);

/** The same by given means, for tests. */
export function watchPathsBy(
  { watch: watchFolder = watch, lookEveryMs = LOOK_EVERY_MS }: WatchMeans,
  paths: readonly string[],
  events: WatchEvents,
): () => void {
  const watchers: FSWatcher[] = [];
  const close = (): void => {
    for (const watcher of watchers) watcher.close();
  };
  try {
    for (const { folder, isRelevant } of paths.flatMap(foldersOf)) {
      const watcher = watchFolder(folder, { persistent: false });
      watchers.push(watcher);
      watcher.on("change", (_, name) => {
        if (isRelevant(typeof name === "string" ? name : null)) events.onChange();
      });
      watcher.on("error", events.onError);
    }
  } catch {
    // EMFILE, ENOSPC: a limit of the machine, which other programs may have reached.
    close();
    return lookAt(paths, lookEveryMs, events);
  }
  return close;
}

function foldersOf(given: string) {
  const parent = path.dirname(path.resolve(given));
  const isGiven = (name: string | null): boolean =>
    // The second name is the link that a mounted ConfigMap's files go through; its swap is the edit.
    name === null || name === path.basename(given) || name === "..data";
  return [
    ...(isFolder(given) ? [{ folder: given, isRelevant: () => true }] : []),
    ...(isFolder(parent) ? [{ folder: parent, isRelevant: isGiven }] : []),
  ];
}

function lookAt(paths: readonly string[], everyMs: number, { onChange }: WatchEvents): () => void {
  const look = (): string => paths.map(stateOf).join("\n");
  let seen = look();
  const timer = setInterval(() => {
    const now = look();
    if (now === seen) return;
    seen = now;
    onChange();
  }, everyMs).unref();
  return () => clearInterval(timer);
}

/** Changes with the file, or with any file of the folder itself, as a watch does. Links are followed. */
function stateOf(given: string): string {
  return [given, ...filesIn(given)].map(fileStateOf).join();
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder).map((name) => path.join(folder, name));
  } catch {
    return [];
  }
}

function fileStateOf(file: string): string {
  try {
    const { ino, mtimeMs, size } = statSync(file);
    return [ino, mtimeMs, size].join();
  } catch {
    return "unreadable";
  }
}

function isFolder(name: string): boolean {
  return statSync(name, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
