import { ConnectError } from "@sluice/client/internal/http/upstream/connect-error";
import { maskControls } from "../../observability/mask-controls.ts";
import { type Invocation, UsageError } from "../command.ts";
import type { command } from "../commands/logs.ts";
import { openConnection, parseResource } from "./connection.ts";
import { type LogRequest, type LogSource, printContainerLog } from "./container-log.ts";
import { containerOf, PodSource, podsWith, podsWithin, usablePods } from "./find-pods.ts";
import type { PodObject } from "./pod-objects.ts";
import { reportError } from "./report-error.ts";

/** kubectl's number of lines if labels select the pods. */
const TAIL_OF_SELECTED = 10;

type LogsInvocation = Invocation<typeof command.flags>;
type LogsValues = LogsInvocation["values"];

/** Prints logs one after the other, or side by side if they are followed. */
export async function run(invocation: LogsInvocation): Promise<number> {
  const values = { ...invocation.values, container: containerNamed(invocation) };
  const connection = await openConnection(values);
  const stop = new AbortController();
  try {
    const pods = await chosenPods(connection, invocation);
    if (pods.length === 0) {
      process.stderr.write(`No resources found in ${maskControls(connection.namespace)} namespace.\n`);
      return 0;
    }
    const sources = pods.flatMap((pod) =>
      containersIn(pod, values).map((container) => ({
        namespace: pod.metadata.namespace ?? connection.namespace,
        pod: pod.metadata.name,
        container,
      })),
    );
    const allowed = values["max-log-requests"];
    if (values.follow && sources.length > 1 && sources.length > allowed) {
      throw new ConnectError(
        "http",
        `you are attempting to follow ${sources.length} log streams, but maximum allowed concurrency is ${allowed}, use --max-log-requests to increase the limit`,
      );
    }
    const request = requestOf(values);
    const print = (source: LogSource): Promise<void> =>
      printContainerLog(connection, source, request, {
        prefix: prefixOf(source, values),
        signal: stop.signal,
        write: writeToStdout,
      }).catch((error: unknown) => {
        if (!values["ignore-errors"] || !(error instanceof ConnectError)) throw error;
        process.stderr.write(`error: ${maskControls(error.message)}\n`);
      });
    if (values.follow) await Promise.all(sources.map(print));
    else for (const source of sources) await print(source);
    return 0;
  } catch (error) {
    stop.abort();
    if (error instanceof ConnectError || !(error instanceof Error) || error instanceof UsageError) {
      return reportError(error);
    }
    process.stderr.write(`error: ${maskControls(error.message)}\n`);
    return 1;
  }
}

/** The container that a flag or the second operand names. Throws UsageError in kubectl's words. */
function containerNamed({ values, operands }: LogsInvocation): string | undefined {
  const [resource, container, ...more] = operands;
  const { selector, since, "since-time": sinceTime } = values;
  if (more.length > 0 || (resource === undefined && selector === undefined)) {
    throw new UsageError(
      "expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\nPOD or TYPE/NAME is a required argument for the logs command",
    );
  }
  if (resource !== undefined && selector !== undefined) {
    throw new UsageError("only a selector (-l) or a POD name is allowed");
  }
  if (container !== undefined && values.container !== undefined) {
    throw new UsageError("only one of -c or an inline [CONTAINER] arg is allowed");
  }
  const named = container ?? values.container;
  if (values["all-containers"] && named !== undefined) {
    throw new UsageError(`--all-containers=true should not be specified with container name ${named}`);
  }
  if (since > 0 && sinceTime !== undefined) {
    throw new UsageError("at most one of `sinceTime` or `sinceSeconds` may be specified");
  }
  if (sinceTime !== undefined && Number.isNaN(Date.parse(sinceTime))) {
    throw new UsageError(`--since-time must be a time such as 2026-01-31T12:00:00Z, not ${sinceTime}`);
  }
  return named;
}

async function chosenPods(
  connection: Awaited<ReturnType<typeof openConnection>>,
  { values, operands }: LogsInvocation,
): Promise<readonly PodObject[]> {
  if (values.selector !== undefined) return podsWith(connection, values.selector);
  const source = new PodSource(connection, parseResource(operands[0]));
  const pods = await podsWithin(source, values["pod-running-timeout"]);
  if (source.isOnePod || values["all-pods"]) return pods;
  const best = usablePods(pods, false)[0] ?? usablePods(pods, true)[0] ?? pods[0];
  if (pods.length > 1) {
    process.stderr.write(`Found ${pods.length} pods, using pod/${maskControls(best?.metadata.name ?? "")}\n`);
  }
  return best === undefined ? [] : [best];
}

function containersIn(pod: PodObject, values: LogsValues): readonly string[] {
  const { initContainers, containers, ephemeralContainers } = pod.spec ?? {};
  const all = [...(initContainers ?? []), ...(containers ?? []), ...(ephemeralContainers ?? [])];
  if (values["all-containers"]) return all.map(({ name }) => name);
  if (values.container !== undefined && all.every(({ name }) => name !== values.container)) {
    const names = all.map(({ name }) =>
      initContainers?.some((init) => init.name === name) ? `${name} (init)` : name,
    );
    throw new Error(
      `container ${values.container} is not valid for pod ${pod.metadata.name} out of: ${names.join(", ")}`,
    );
  }
  if (values.container !== undefined) return [values.container];
  const { container, notice } = containerOf(pod, undefined);
  if (notice !== undefined) process.stderr.write(`${maskControls(notice)}\n`);
  return [container.name];
}

function requestOf(values: LogsValues): LogRequest {
  const tail = values.tail === -1 && values.selector !== undefined ? TAIL_OF_SELECTED : values.tail;
  return {
    follow: values.follow,
    previous: values.previous,
    timestamps: values.timestamps,
    sinceSeconds: values.since > 0 ? Math.max(1, Math.round(values.since / 1_000)) : undefined,
    sinceTime: values["since-time"],
    tailLines: tail === -1 ? undefined : tail,
    limitBytes: values["limit-bytes"] || undefined,
    insecureSkipTLSVerifyBackend: values["insecure-skip-tls-verify-backend"],
  };
}

function prefixOf({ pod, container }: LogSource, values: LogsValues): Buffer | undefined {
  if (!values.prefix && !values["all-pods"]) return undefined;
  return Buffer.from(maskControls(`[pod/${pod}/${container}] `));
}

/** Logs that are followed side by side share one wait for stdout to drain. */
let drained: Promise<void> | undefined;

function writeToStdout(parts: readonly Buffer[]): Promise<void> | undefined {
  const { stdout } = process;
  if (stdout.write(Buffer.concat(parts))) return undefined;
  drained ??= new Promise((resolve) => {
    stdout.once("drain", () => {
      drained = undefined;
      resolve();
    });
  });
  return drained;
}
