import type { ContainerStatus, PodStatus } from "../api/objects.ts";
import {
  CONTAINER_STATE,
  type CriRuntime,
  type PodSandbox,
  type RuntimeContainer,
  type RuntimeContainerStatus,
} from "./cri-runtime.ts";
import { byAttempt, bySandboxAge, nameOf } from "./pods.ts";

type StatusRuntime = Pick<
  CriRuntime,
  "version" | "listPodSandboxes" | "podSandboxStatus" | "listContainers" | "containerStatus"
>;

/** Identified by name, because a pod in a manifest file has another uid than in the runtime. */
interface SeenPod {
  readonly namespace: string;
  readonly name: string;
  readonly status: PodStatus;
}

interface PodStatusesOptions {
  readonly runtime: StatusRuntime;
  readonly onStatus: (pod: SeenPod) => void;
  /** Reports a failed query of the runtime; the query is repeated. */
  readonly onProblem: (error: unknown) => void;
  readonly intervalMs?: number;
}

/** The kubelet lists its containers as often. */
const INTERVAL_MS = 1_000;

/**
 * The statuses of a runtime's pods as a kubelet reports them: containers, their states, the pod's
 * IP. Lists once a second, and queries a container again if its state has changed.
 */
export class PodStatuses {
  readonly #options: PodStatusesOptions;
  readonly #details = new Map<string, { readonly state: number; readonly status: RuntimeContainerStatus }>();
  readonly #addresses = new Map<string, string>();
  #runtimeName: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: PodStatusesOptions) {
    this.#options = options;
  }

  start(): void {
    void this.#listAgain();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  async #listAgain(): Promise<void> {
    const { onStatus, onProblem, intervalMs = INTERVAL_MS } = this.#options;
    try {
      const pods = await this.read();
      if (!this.#isStopped) for (const pod of pods) onStatus(pod);
    } catch (error) {
      if (!this.#isStopped) onProblem(error);
    }
    if (!this.#isStopped) this.#timer = setTimeout(() => void this.#listAgain(), intervalMs).unref();
  }

  /** If a pod has several sandboxes, a ready one counts, else the newest. Throws RuntimeError. */
  async read(): Promise<readonly SeenPod[]> {
    const { runtime } = this.#options;
    this.#runtimeName ??= (await runtime.version()).runtimeName;
    const [sandboxes, containers] = await Promise.all([runtime.listPodSandboxes(), runtime.listContainers()]);
    this.#forgetAllBut(sandboxes, containers);
    const found = new Map<string, PodSandbox>();
    for (const sandbox of sandboxes.toSorted(bySandboxAge)) {
      const { namespace, name } = sandbox.metadata;
      if (!found.has(`${namespace}/${name}`)) found.set(`${namespace}/${name}`, sandbox);
    }
    return Promise.all(
      Array.from(found.values(), async (sandbox) => {
        const { namespace, name } = sandbox.metadata;
        const own = containers.filter(({ podSandboxId }) => podSandboxId === sandbox.id);
        return { namespace, name, status: await this.#statusOf(sandbox, own) };
      }),
    );
  }

  async #statusOf(sandbox: PodSandbox, containers: readonly RuntimeContainer[]): Promise<PodStatus> {
    const newest = new Map<string, RuntimeContainer>();
    for (const container of containers.toSorted(byAttempt)) {
      if (!newest.has(nameOf(container))) newest.set(nameOf(container), container);
    }
    const containerStatuses = await Promise.all(
      [...newest.values()].map((each) => this.#containerStatus(each)),
    );
    const podIP = await this.#addressOf(sandbox);
    return { phase: "Running", ...(podIP !== "" && { podIP }), containerStatuses };
  }

  async #containerStatus(container: RuntimeContainer): Promise<ContainerStatus> {
    const detail = await this.#detailOf(container);
    return {
      name: nameOf(container),
      image: container.image?.image ?? "",
      imageID: container.imageRef,
      containerID: `${this.#runtimeName}://${container.id}`,
      restartCount: container.metadata.attempt,
      state: stateOf(detail),
    };
  }

  async #detailOf({ id, state }: RuntimeContainer): Promise<RuntimeContainerStatus> {
    const known = this.#details.get(id);
    if (known?.state === state) return known.status;
    const status = await this.#options.runtime.containerStatus(id);
    this.#details.set(id, { state: status.state, status });
    return status;
  }

  async #addressOf({ id }: PodSandbox): Promise<string> {
    const known = this.#addresses.get(id);
    if (known !== undefined) return known;
    const address = (await this.#options.runtime.podSandboxStatus(id)).network?.ip ?? "";
    this.#addresses.set(id, address);
    return address;
  }

  #forgetAllBut(sandboxes: readonly PodSandbox[], containers: readonly RuntimeContainer[]): void {
    const ids = new Set([...sandboxes, ...containers].map(({ id }) => id));
    for (const id of this.#details.keys()) if (!ids.has(id)) this.#details.delete(id);
    for (const id of this.#addresses.keys()) if (!ids.has(id)) this.#addresses.delete(id);
  }
}

function stateOf({ state, startedAt, finishedAt, exitCode, reason }: RuntimeContainerStatus) {
  switch (state) {
    case CONTAINER_STATE.running:
      return { running: { startedAt: timeOf(startedAt) } };
    case CONTAINER_STATE.exited:
      return {
        terminated: { exitCode, reason, startedAt: timeOf(startedAt), finishedAt: timeOf(finishedAt) },
      };
    default:
      return { waiting: { reason: "ContainerCreating" } };
  }
}

/** Converts nanoseconds since 1970 to RFC 3339. */
function timeOf(nanoseconds: number): string {
  return new Date(Number(nanoseconds) / 1e6).toISOString().replace(/\.\d+Z$/, "Z");
}
