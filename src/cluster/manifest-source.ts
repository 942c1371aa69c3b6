import type { FeatureGates } from "../config/feature-gates.ts";
import type { ClusterStore } from "./cluster-store.ts";
import { readManifestFiles } from "./manifest-files.ts";
import { parsingManifests } from "./manifests.ts";
import { type WatchPaths, watchFolders } from "./path-watcher.ts";
import { inSlices } from "./slices.ts";

/** Long enough for an editor or a copied folder to finish, short enough to feel immediate. */
export const DEFAULT_RELOAD_DELAY_MS = 200;

/** What the source says while it runs. */
export interface ReloadLogger {
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
}

export interface ManifestSourceOptions {
  /** Files and folders. */
  readonly paths: readonly string[];
  readonly store: ClusterStore;
  /** Which optional fields of the objects are kept. */
  readonly gates: FeatureGates;
  readonly logger: ReloadLogger;
  readonly watchPaths?: WatchPaths;
  readonly reloadDelayMs?: number;
  readonly now?: () => Date;
}

/** Keeps a store equal to manifest files. A bad edit changes nothing: it is logged, and the last good state stays. */
export class ManifestSource {
  readonly #options: ManifestSourceOptions;
  #stopWatching: () => void = () => {};
  #timer: NodeJS.Timeout | undefined;
  #reloading: Promise<void> = Promise.resolve();
  #isStopped = false;

  private constructor(options: ManifestSourceOptions) {
    this.#options = options;
  }

  /** Loads and watches. Throws ConfigurationError when the files are wrong at the start: there is no last good state yet. */
  static async start(options: ManifestSourceOptions): Promise<ManifestSource> {
    const source = new ManifestSource(options);
    const { paths, watchPaths = watchFolders } = options;
    // Watching comes first, so that no edit falls between the two.
    source.#stopWatching = watchPaths(paths, {
      onChange: () => source.#scheduleReload(),
      onError: (error) =>
        source.#options.logger.error({ paths, error: error.message }, "manifests are no longer watched"),
    });
    try {
      await source.#load();
    } catch (error) {
      await source.stop();
      throw error;
    }
    return source;
  }

  /** Reads the files now, whether they seem to have changed or not. Never rejects. */
  reload(): Promise<void> {
    this.#reloading = this.#reloading.then(() => this.#reload());
    return this.#reloading;
  }

  /** No reload happens once the promise is kept. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopWatching();
    clearTimeout(this.#timer);
    await this.#reloading;
  }

  #scheduleReload(): void {
    // Counted from the first of several events, so that a busy folder cannot put the reload off for ever.
    if (this.#isStopped || this.#timer !== undefined) return;
    const { reloadDelayMs = DEFAULT_RELOAD_DELAY_MS } = this.#options;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.reload();
    }, reloadDelayMs).unref();
  }

  async #reload(): Promise<void> {
    if (this.#isStopped) return;
    const { logger, paths } = this.#options;
    let changes: number;
    try {
      changes = await this.#load();
    } catch (error) {
      const problems = error instanceof Error ? error.message.split("\n") : [String(error)];
      logger.error({ paths, problems }, "manifests are wrong, the last good ones stay in use");
      return;
    }
    if (changes > 0) logger.info({ paths, changes }, "manifests reloaded");
  }

  /** Returns the number of changes. */
  async #load(): Promise<number> {
    const { paths, store, gates, now = () => new Date() } = this.#options;
    const objects = await inSlices(parsingManifests(await readManifestFiles(paths), gates));
    return this.#isStopped ? 0 : await inSlices(store.replacingAll(objects, now()));
  }
}
