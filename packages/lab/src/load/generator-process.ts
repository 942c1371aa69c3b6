import type { Target } from "@sluice/client";
import { Generator } from "./generator.ts";
import type { FromGenerator, ToGenerator } from "./generator-processes.ts";

/**
 * A generator process: receives its orders from the parent, runs them, and ends. Resolves when
 * everything was reported.
 */
export function serveGenerator<T>(openTarget: (target: T) => Promise<Target>): Promise<void> {
  // A terminal sends Ctrl-C to the whole group; the parent decides when to stop.
  process.on("SIGINT", () => {});
  const onDisconnect = (): void => process.exit(1);
  process.once("disconnect", onDisconnect);
  let generator: Generator | undefined;
  let isStopped = false;
  return new Promise((resolve, reject) => {
    const run = async ({ plan, share, target }: Extract<ToGenerator<T>, { type: "run" }>): Promise<void> => {
      generator = new Generator(plan, share, await openTarget(target), (interval) => {
        process.send?.({ type: "interval", interval } satisfies FromGenerator);
      });
      if (isStopped) generator.stop();
      await generator.run();
      process.off("disconnect", onDisconnect);
    };
    process.send?.({ type: "ready" } satisfies FromGenerator);
    process.on("message", (message: ToGenerator<T>) => {
      if (message.type === "run") {
        void run(message).then(resolve, reject);
        return;
      }
      isStopped = true;
      generator?.stop();
    });
  });
}
