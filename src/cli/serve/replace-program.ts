import type { Lineage } from "../../app/runtime/lineage.ts";
import { startSuccessor } from "../../app/runtime/successor.ts";
import type { Logger } from "../../observability/logger.ts";

const FAILED = "the program could not be replaced, and serves on";

/**
 * At each SIGUSR2 starts the program again, and resolves when that serves in this one's place.
 * Signals wait until this program is `serving`; `ending` stops a start in progress.
 */
export function replacedBySignal(
  lineage: Lineage,
  logger: Pick<Logger, "info" | "error">,
  { serving, ending }: { readonly serving: Promise<void>; readonly ending: AbortSignal },
): Promise<"replaced"> {
  let isStarting = false;
  return new Promise((resolve) => {
    const replace = async (): Promise<void> => {
      if (isStarting || ending.aborted) return;
      if (process.pid === 1) {
        logger.error({ problem: "the end of process 1 ends its container" }, FAILED);
        return;
      }
      isStarting = true;
      await serving;
      logger.info({}, "starting the program that replaces this one");
      try {
        const { pid: successorPid } = await startSuccessor(lineage, ending);
        lineage.handOver();
        logger.info({ successorPid }, "another program serves in this one's place");
        resolve("replaced");
      } catch (error) {
        const problem = error instanceof Error ? error.message : String(error);
        logger.error({ problem }, FAILED);
        isStarting = false;
      }
    };
    process.on("SIGUSR2", () => void replace());
  });
}
