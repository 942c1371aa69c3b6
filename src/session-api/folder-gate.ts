import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";

/** How long the folder may take to answer a request of the API. Past it: 503. */
export const MAX_FOLDER_WAIT_MS = 10_000;
/** Requests that the folder's disk carries out at once. Past it they wait: one that hangs keeps a thread of Node.js. */
export const MAX_FOLDER_REQUESTS = 2;

/** Lets requests to a folder through, a few at once, and gives up those that its disk does not answer. */
export class FolderGate {
  #running = 0;
  /** Given up, and still not answered. */
  #hanging = 0;
  #waiting: (() => void)[] = [];

  /** Throws StatusError 503 for a disk that hangs: at once while an earlier request does. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#hanging > 0) throw WIRE_ERRORS["recording-folder-silent"].streaming();
    let timer: NodeJS.Timeout | undefined;
    let isLate = false;
    let isRunning = false;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        isLate = true;
        if (isRunning) this.#hanging += 1;
        reject(WIRE_ERRORS["recording-folder-silent"].streaming());
      }, MAX_FOLDER_WAIT_MS);
    });
    const worked = this.#turn().then(async () => {
      isRunning = !isLate;
      try {
        if (isLate) throw new Error("its request was given up");
        return await work();
      } finally {
        if (isLate && isRunning) this.#hanging -= 1;
        this.#running -= 1;
        this.#waiting.shift()?.();
      }
    });
    worked.catch(() => {});
    return await Promise.race([worked, late]).finally(() => clearTimeout(timer));
  }

  async #turn(): Promise<void> {
    while (this.#running >= MAX_FOLDER_REQUESTS)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running += 1;
  }
}
