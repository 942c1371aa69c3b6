import type { Writable } from "node:stream";

/** Resolves when the client has taken the written bytes, or has left. Removes its listeners. */
export function waitForDrain(response: Writable): Promise<void> {
  if (response.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const settle = (): void => {
      response.off("drain", settle).off("close", settle);
      resolve();
    };
    response.on("drain", settle).on("close", settle);
  });
}
