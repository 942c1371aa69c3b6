import { namedFilesAreRight, readNamedFile } from "@sluice/client/internal/config/named-file-text";
import { type WatchPaths, watchFolders } from "../config/path-watcher.ts";
import type { Logger } from "../observability/logger.ts";

/** Tools write several files in a row, so they are read once nothing has changed for this long. */
const SETTLE_MS = 200;

/** Reads a file that the configuration names. */
export type ReadFile = (name: string) => Promise<string>;

interface FollowedFilesOptions<T> {
  /** The files' description for the log, e.g. `the serving certificate`. */
  readonly what: string;
  /** Fields for every log line. */
  readonly fields: Readonly<Record<string, string>>;
  /** Builds a value from the files that it reads. If it rejects, the previous value stays. */
  readonly read: (file: ReadFile) => Promise<T>;
  /** Applies a value built from changed files. If it throws, the previous value stays. */
  readonly changed: (value: T) => void;
  readonly logger: Pick<Logger, "info" | "error">;
  /** For tests. */
  readonly watch?: WatchPaths;
}

/** Follows files that the configuration names: when one changes, rebuilds the value made from them. */
export class FollowedFiles<T> {
  readonly #options: FollowedFilesOptions<T>;
  /** The texts behind the value in force, by file name. */
  #texts: ReadonlyMap<string, string>;
  #stopWatching: () => void;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();

  /** `texts`: the files that were read for the value in force. */
  constructor(options: FollowedFilesOptions<T>, texts: ReadonlyMap<string, string>) {
    this.#options = options;
    this.#texts = texts;
    this.#stopWatching = this.#watch();
  }

  /** Reads the files for the first time. Rejects as `read` does. */
  static async open<T>(
    options: FollowedFilesOptions<T>,
  ): Promise<{ readonly value: T; readonly files: FollowedFiles<T> }> {
    const { value, texts } = await recorded(options.read);
    return { value, files: new FollowedFiles(options, texts) };
  }

  /** Reads the files now; calls run one after the other. Never rejects. */
  reload(): Promise<void> {
    this.#running = this.#running.then(() => this.#reload());
    return this.#running;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#stopWatching();
  }

  async #reload(): Promise<void> {
    const { what, fields, read, changed, logger } = this.#options;
    try {
      const { value, texts } = await recorded(read);
      if (isSame(texts, this.#texts)) return;
      changed(value);
      const hasOtherFiles = !sameNames(texts, this.#texts);
      this.#texts = texts;
      if (hasOtherFiles) {
        this.#stopWatching();
        this.#stopWatching = this.#watch();
      }
      namedFilesAreRight(Array.from(texts, ([name, text]) => ({ name, text })));
      logger.info(fields, `${what} was read again`);
    } catch (error) {
      logger.error({ error, ...fields }, `${what} could not be read again`);
    }
  }

  #watch(): () => void {
    const { what, fields, logger, watch = watchFolders } = this.#options;
    if (this.#texts.size === 0) return () => {};
    return watch([...this.#texts.keys()], {
      onChange: () => {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => void this.reload(), SETTLE_MS).unref();
      },
      onError: (error) => logger.error({ error, ...fields }, `${what} is no longer watched`),
    });
  }
}

async function recorded<T>(read: FollowedFilesOptions<T>["read"]) {
  const texts = new Map<string, string>();
  const value = await read(async (name) => {
    const text = await readNamedFile(name);
    texts.set(name, text);
    return text;
  });
  return { value, texts };
}

function isSame(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  return sameNames(one, other) && Array.from(one).every(([name, text]) => other.get(name) === text);
}

function sameNames(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  return one.size === other.size && Array.from(one.keys()).every((name) => other.has(name));
}
