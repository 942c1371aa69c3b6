import type { Writable } from "node:stream";

/** Resolves when the client has taken what was written, or is gone. Leaves no listener behind. */
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
