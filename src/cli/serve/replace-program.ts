import type { Lineage } from "../../app/runtime/lineage.ts";
import type { ServeLife } from "../../app/runtime/serve-life.ts";
import { startSuccessor } from "../../app/runtime/successor.ts";
import type { Logger } from "../../observability/logger.ts";

const FAILED = "the program could not be replaced, and serves on";

/**
 * At each SIGUSR2 starts the program again; when that serves, this one leaves. A signal waits until
 * this program has announced that it serves; leaving stops a start in progress.
 */
export function replaceAtSignal(
  lineage: Lineage,
  logger: Pick<Logger, "info" | "error">,
  life: Pick<ServeLife, "leaving" | "announced" | "leave">,
): void {
  let isStarting = false;
  const replace = async (): Promise<void> => {
    if (isStarting || life.leaving.aborted) return;
    if (process.pid === 1) {
      logger.error({ problem: "the end of process 1 ends its container" }, FAILED);
      return;
    }
    isStarting = true;
    await life.announced;
    logger.info({}, "starting the program that replaces this one");
    try {
      const { pid: successorPid } = await startSuccessor(lineage, life.leaving);
      lineage.handOver();
      logger.info({ successorPid }, "another program serves in this one's place");
      life.leave("replaced");
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      logger.error({ problem }, FAILED);
      isStarting = false;
    }
  };
  process.on("SIGUSR2", () => void replace());
}
