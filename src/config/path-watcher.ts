import { type FSWatcher, readdirSync, statSync, watch } from "node:fs";
import path from "node:path";

/**
 * Calls `onChange` whenever something at the paths may have changed, perhaps too often. The
 * returned function stops it.
 */
export type WatchPaths = (paths: readonly string[], events: WatchEvents) => () => void;

interface WatchEvents {
  onChange(): void;
  /** Watching has ended. */
  onError(error: Error): void;
}

/**
 * The polling interval if the system refuses another watch (each user has few inotify instances).
 */
const LOOK_EVERY_MS = 5_000;

type Watch = (folder: string, options: { persistent: false }) => FSWatcher;

interface WatchMeans {
  readonly watch?: Watch;
  readonly lookEveryMs?: number;
}

/**
 * Watches folders, also a file's parent folder: editors and mounted ConfigMaps replace files, and a
 * watch on a file would stay with the old one. A missing path is not watched; reading it fails.
 */
export const watchFolders: WatchPaths = (paths, events) => watchPathsBy({}, paths, events);

/** The same, with injected dependencies for tests. */
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
    // EMFILE or ENOSPC: a limit of the machine, which other programs may have used up.
    close();
    return lookAt(paths, lookEveryMs, events);
  }
  return close;
}

function foldersOf(given: string) {
  const parent = path.dirname(path.resolve(given));
  const isGiven = (name: string | null): boolean =>
    // The second name is the link through which a mounted ConfigMap's files are replaced at once.
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

/**
 * Changes with the file, or with any file in the folder, as a watch would report. Follows links.
 */
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
