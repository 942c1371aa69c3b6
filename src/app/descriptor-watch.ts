import { open } from "node:fs/promises";
import type { Component } from "../lifecycle/component.ts";
import type { Logger } from "../observability/logger.ts";

/** How often the process tries to open a descriptor. */
const DESCRIPTOR_CHECK_MS = 1_000;
/** The limit is logged at most once in this time. */
const DESCRIPTOR_LOG_MS = 60_000;

const ADVICE = "raise it (LimitNOFILE= of systemd, ulimit -n), or lower limits.maxConnectionsPerAddress";

interface DescriptorWatchOptions {
  readonly logger: Pick<Logger, "error">;
  /** Opens and closes a descriptor; rejects if none is left. */
  readonly tryOpen?: () => Promise<void>;
  readonly checkMs?: number;
  readonly nowMs?: () => number;
}

/**
 * Logs when this process has no file descriptors left. Node does not: libuv closes connections that
 * it cannot accept, without reporting it.
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
