import { open } from "node:fs/promises";
import type { Component } from "../lifecycle/component.ts";
import type { Logger } from "../observability/logger.ts";

/** How often it is tried whether a descriptor can be opened. */
export const DESCRIPTOR_CHECK_MS = 1_000;
/** One line for so long, however often the limit is reached. */
export const DESCRIPTOR_LOG_MS = 60_000;

const ADVICE = "raise it (LimitNOFILE= of systemd, ulimit -n), or lower limits.maxConnectionsPerAddress";

export interface DescriptorWatchOptions {
  readonly logger: Pick<Logger, "error">;
  /** Opens and closes a descriptor; rejects where there is none left. */
  readonly tryOpen?: () => Promise<void>;
  readonly checkMs?: number;
  readonly nowMs?: () => number;
}

/**
 * Reports that this process has no descriptor left. The system's accept does not: libuv closes what it cannot accept, and Node hears
 * nothing of it.
 */
export function watchDescriptors(options: DescriptorWatchOptions): Component {
  const { logger, tryOpen = openAndClose, checkMs = DESCRIPTOR_CHECK_MS } = options;
  const nowMs = options.nowMs ?? (() => performance.now());
  let loggedMs = Number.NEGATIVE_INFINITY;
  const check = async (): Promise<void> => {
    try {
      await tryOpen();
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== "EMFILE" && code !== "ENFILE") return;
      if (nowMs() - loggedMs < DESCRIPTOR_LOG_MS) return;
      loggedMs = nowMs();
      const problem =
        code === "EMFILE"
          ? `this process may have no more open files: ${ADVICE}`
          : "the system has no more open files";
      logger.error({ code, problem }, "connections are closed unanswered, for lack of descriptors");
    }
  };
  const timer = setInterval(() => void check(), checkMs).unref();
  return {
    stop: () => clearInterval(timer),
  };
}

async function openAndClose(): Promise<void> {
  const file = await open("/dev/null");
  await file.close();
}
