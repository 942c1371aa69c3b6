import { type FSWatcher, watch } from "node:fs";
import path from "node:path";

/**
 * Wakes readers when a file grows or is replaced. If the system cannot watch it (too many watches,
 * no folder), only the time-out wakes them.
 */
export class FileChange {
  readonly #watcher: FSWatcher | undefined;
  #hasChanged = false;
  #wake: (() => void) | undefined;

  constructor(file: string) {
    const name = path.basename(file);
    try {
      this.#watcher = watch(path.dirname(file), { persistent: false }, (_event, changed) => {
        if (changed === null || changed === name) this.#notice();
      });
      this.#watcher.on("error", () => this.#watcher?.close());
    } catch {
      this.#watcher = undefined;
    }
  }

  /** Resolves at the next change, at one since the last call, when aborted, or after `timeoutMs`. */
  async next(timeoutMs: number, signal: AbortSignal): Promise<void> {
    if (!this.#hasChanged && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        signal.addEventListener("abort", resolve as () => void, { once: true });
        this.#wake = resolve;
        this.#settle = () => {
          clearTimeout(timer);
          signal.removeEventListener("abort", resolve as () => void);
        };
      });
      this.#settle?.();
      this.#wake = undefined;
    }
    this.#hasChanged = false;
  }

  close(): void {
    this.#watcher?.close();
  }

  #settle: (() => void) | undefined;

  #notice(): void {
    this.#hasChanged = true;
    this.#wake?.();
  }
}
