import { type PodLogOptions, parsePodLogOptions } from "@sluice/client/internal/api/pod-log-options";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import type { KubeletPath } from "../../api/kubelet-path.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { CONTAINER_STATE, type CriRuntime, type RuntimeContainer } from "../../cri/cri-runtime.ts";
import { findSandbox, listAttempts } from "../../cri/pods.ts";
import { RuntimeError } from "../../cri/runtime-error.ts";
import { waitForDrain } from "../../listeners/wait-for-drain.ts";
import { type LogSource, openLog, readLog } from "./logs/read-log.ts";

/**
 * Answers `/containerLogs`. Throws the kubelet's refusals; resolves when the log ends or the client
 * leaves.
 */
export async function serveLogs(
  path: KubeletPath,
  query: URLSearchParams,
  downstream: HttpDownstream,
  runtime: CriRuntime,
): Promise<void> {
  const options = parsePodLogOptions(query, Date.now());
  const container = await findLogged(path, options, runtime);
  const source = await sourceOf(container, runtime);
  const file = await openLog(source.path).catch((error: unknown) => {
    throw unreadable(container, error);
  });
  const abort = new AbortController();
  // Aborts at once if the client left while the log was looked up.
  downstream.onClose(() => abort.abort());
  // A followed log may be silent for long, so the head does not wait for its first line.
  const sink = downstream.respond(200, "OK", [
    ["Content-Type", "text/plain; charset=utf-8"],
    ["Date", new Date().toUTCString()],
  ]);
  for await (const part of readLog(file, source, options, abort.signal)) {
    if (!sink.write(part)) await waitForDrain(sink);
  }
  downstream.finish([]);
}

async function findLogged(
  path: KubeletPath,
  { previous }: PodLogOptions,
  runtime: CriRuntime,
): Promise<RuntimeContainer> {
  const { pod, container: name } = path;
  const sandbox = await findSandbox(runtime, path).catch((error: unknown) => {
    if (error instanceof RuntimeError) throw error;
    throw WIRE_ERRORS["log-pod-unknown"].kubelet({ pod: JSON.stringify(pod) });
  });
  const attempts = await listAttempts(runtime, sandbox, name);
  const quoted = { container: JSON.stringify(name), pod: JSON.stringify(pod) };
  const [present, ...earlier] = attempts;
  if (present === undefined) {
    throw WIRE_ERRORS["log-container-unknown"].kubelet(quoted);
  }
  if (previous) {
    // A restarted container that exited is about to restart again: like the kubelet, treats this
    // attempt as the last one and the next as waiting.
    const isWaiting = present.state === CONTAINER_STATE.exited && present.metadata.attempt > 0;
    const last = isWaiting ? present : earlier.find(({ state }) => state === CONTAINER_STATE.exited);
    if (last === undefined) throw WIRE_ERRORS["log-not-previous"].kubelet(quoted);
    return last;
  }
  if (present.state === CONTAINER_STATE.created) {
    throw WIRE_ERRORS["log-not-started"].kubelet(quoted);
  }
  return present;
}

async function sourceOf({ id }: RuntimeContainer, runtime: CriRuntime): Promise<LogSource> {
  const { logPath } = await runtime.containerStatus(id);
  return {
    path: logPath,
    isRunning: async () => {
      try {
        return (await runtime.containerStatus(id)).state === CONTAINER_STATE.running;
      } catch (error) {
        // A restarting runtime leaves its containers running.
        return !(error instanceof RuntimeError) || error.code !== "NotFound";
      }
    },
  };
}

/** Uses the kubelet's words; the file system's error stays on the node. */
function unreadable({ id }: RuntimeContainer, cause: unknown): Error {
  const refusal = WIRE_ERRORS["log-unreadable"].kubelet({ id });
  refusal.cause = cause;
  return refusal;
}
