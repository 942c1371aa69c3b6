import { ConnectError } from "@sluice/client/internal/http/upstream/connect-error";
import type { PodReference } from "@sluice/client/internal/pod-paths";
import { maskControls } from "../../observability/mask-controls.ts";
import { type ClientConnection, parseResource } from "./connection.ts";
import { containerOf, PodSource, podsWithin, usablePods } from "./find-pods.ts";
import type { PodObject } from "./pod-objects.ts";
import { reportError } from "./report-error.ts";

/** A container that was found, in a pod. */
interface FoundContainer extends PodReference {
  /** Whether its main process has a terminal. */
  readonly hasTerminal: boolean;
}

/** Finds the container for a command. Returns the exit code if there is none, with the reason on stderr. */
export async function findContainer(
  connection: ClientConnection,
  resource: string | undefined,
  containerName: string | undefined,
  {
    isQuiet,
    timeoutMs,
    purpose = "exec into",
  }: { isQuiet: boolean; timeoutMs: number; purpose?: "exec into" | "attach" },
): Promise<FoundContainer | number> {
  const source = new PodSource(connection, parseResource(resource));
  let pod: PodObject | undefined;
  try {
    const pods = await podsWithin(source, timeoutMs);
    pod = usablePods(pods, source.isOnePod)[0] ?? pods[0];
    if (pod === undefined) throw new ConnectError("http", `no pod found for ${resource}`);
    const { phase = "" } = pod.status ?? {};
    if (phase === "Succeeded" || phase === "Failed") {
      throw new ConnectError(
        "http",
        `cannot ${purpose} a container in a completed pod; current phase is ${phase}`,
      );
    }
    const { container, notice } = containerOf(pod, containerName);
    if (notice !== undefined && !isQuiet) process.stderr.write(`${maskControls(notice)}\n`);
    return {
      namespace: connection.namespace,
      pod: pod.metadata.name,
      container: container.name,
      hasTerminal: container.tty === true,
    };
  } catch (error) {
    if (error instanceof ConnectError) return reportError(error);
    process.stderr.write(`error: ${maskControls((error as Error).message)}\n`);
    return 1;
  }
}
