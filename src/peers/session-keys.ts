import { namedFilesAreRight, readNamedFile } from "@sluice/client/internal/config/named-file-text";
import { watchFolders } from "../config/path-watcher.ts";
import type { Logger } from "../observability/logger.ts";
import type { SessionKeys } from "../sessions/resumable/replica-name.ts";

const LEAST_KEY_CHARACTERS = 32;
/**
 * Session keys: one signs, one signed before, one will sign next. Each costs a MAC for a wrong
 * name. Past it the file is refused.
 */
const MAX_SESSION_KEYS = 4;
/** A mounted Secret changes in several steps. */
const SETTLE_MS = 200;

/** Throws RangeError that describes the fault in the file without any key. */
function parseSessionKeys(text: string): SessionKeys["current"] {
  const lines = text.split("\n").flatMap((line) => line.trim() || []);
  const [first, ...more] = lines.map((line) => Buffer.from(line));
  if (first === undefined || lines.length > MAX_SESSION_KEYS) {
    throw new RangeError(`must hold 1 to ${MAX_SESSION_KEYS} keys, one a line, got ${lines.length}`);
  }
  const short = lines.findIndex((line) => line.length < LEAST_KEY_CHARACTERS);
  if (short >= 0) {
    throw new RangeError(`key ${short + 1} must have at least ${LEAST_KEY_CHARACTERS} characters`);
  }
  return [first, ...more];
}

/** A file's keys, reloaded when it changes. An invalid file is logged, and the old keys stay. */
export class WatchedSessionKeys implements SessionKeys {
  current: SessionKeys["current"];
  readonly #file: string;
  readonly #logger: Logger;
  readonly #stop: () => void;
  #timer: NodeJS.Timeout | undefined;

  private constructor(file: string, current: SessionKeys["current"], logger: Logger) {
    this.#file = file;
    this.#logger = logger;
    this.current = current;
    this.#stop = watchFolders([file], {
      onChange: () => {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => void this.reload(), SETTLE_MS).unref();
      },
      onError: (error) => logger.error({ error }, "the session keys are no longer watched"),
    });
  }

  /** Rejects if the file cannot be read, and with RangeError for invalid content. */
  static async open(file: string, logger: Logger): Promise<WatchedSessionKeys> {
    return new WatchedSessionKeys(file, parseSessionKeys(await readNamedFile(file)), logger);
  }

  /** Never rejects. */
  async reload(): Promise<void> {
    try {
      const text = await readNamedFile(this.#file);
      this.current = parseSessionKeys(text);
      namedFilesAreRight([{ name: this.#file, text }]);
    } catch (error) {
      this.#logger.error({ error, file: this.#file }, "the session keys could not be read again");
    }
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#stop();
  }
}
