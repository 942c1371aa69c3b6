// src/cri: the client of container runtimes (CRI v1): calls, pods, their statuses

import type { RequestedStreams } from "@sluice/protocols/remotecommand";
import { CriChannel, type CriChannelOptions } from "./cri-channel.ts";
import type { CriMethod } from "./cri-schema.ts";
import { RuntimeError } from "./runtime-error.ts";

/** CRI's PodSandboxState. */
export const SANDBOX_READY = 0;

/** CRI's ContainerState. */
export const CONTAINER_STATE = { created: 0, running: 1, exited: 2, unknown: 3 } as const;

interface RuntimeVersion {
  readonly runtimeName: string;
  readonly runtimeVersion: string;
}

/**
 * One attempt at running a pod. The runtime's times are nanoseconds since 1970; as a number they
 * are exact to 256 ns.
 */
export interface PodSandbox {
  readonly id: string;
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly namespace: string;
    readonly attempt: number;
  };
  readonly state: number;
  readonly createdAt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

interface PodSandboxStatus extends PodSandbox {
  readonly network: {
    readonly ip: string;
    readonly additionalIps: readonly { readonly ip: string }[];
  } | null;
}

/** One attempt at running a container. */
export interface RuntimeContainer {
  readonly id: string;
  readonly podSandboxId: string;
  readonly metadata: { readonly name: string; readonly attempt: number };
  readonly image: { readonly image: string } | null;
  readonly imageRef: string;
  readonly state: number;
  readonly createdAt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface RuntimeContainerStatus {
  readonly id: string;
  readonly state: number;
  readonly createdAt: number;
  /** 0: never. */
  readonly startedAt: number;
  readonly finishedAt: number;
  readonly exitCode: number;
  readonly reason: string;
  readonly message: string;
  /** An absolute path; empty if the container writes no log. */
  readonly logPath: string;
}

export interface ContainerStats {
  readonly attributes: { readonly id: string; readonly labels: Readonly<Record<string, string>> };
  readonly cpu: {
    readonly timestamp: number;
    readonly usageCoreNanoSeconds: Counted;
    readonly usageNanoCores: Counted;
  } | null;
  readonly memory: {
    readonly timestamp: number;
    readonly workingSetBytes: Counted;
    readonly usageBytes: Counted;
    readonly rssBytes: Counted;
  } | null;
  readonly writableLayer: {
    readonly timestamp: number;
    readonly usedBytes: Counted;
    readonly inodesUsed: Counted;
  } | null;
}

/** Null if the runtime does not count it. */
export type Counted = { readonly value: number } | null;

interface ExecResult {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly exitCode: number;
}

interface CriRuntimeOptions extends CriChannelOptions {
  /** The time limit of every call that does not wait for a container. */
  readonly callTimeoutMs: number;
}

/**
 * How much longer than its own time limit a command or a stop may take before the call is
 * cancelled, as in the kubelet.
 */
const SLACK_MS = 2_000;
/** The time limit of a command that has none. */
const LONGEST_CALL_MS = 24 * 60 * 60 * 1_000;

/**
 * A container runtime with CRI v1 (containerd, CRI-O). Every method throws RuntimeError and never
 * retries: a retry would create a second streaming URL or command.
 */
export class CriRuntime {
  readonly #channel: CriChannel;
  readonly #callTimeoutMs: number;

  private constructor(channel: CriChannel, callTimeoutMs: number) {
    this.#channel = channel;
    this.#callTimeoutMs = callTimeoutMs;
  }

  /** Does not wait for the runtime, which may start later and restart. */
  static async open(options: CriRuntimeOptions): Promise<CriRuntime> {
    return new CriRuntime(await CriChannel.open(options), options.callTimeoutMs);
  }

  /** Fails all calls in progress. */
  close(): void {
    this.#channel.close();
  }

  async version(): Promise<RuntimeVersion> {
    return await this.#call("Version", { version: "v1" });
  }

  /** The sandboxes that have all of these labels; without labels, all sandboxes. */
  async listPodSandboxes(labels: Readonly<Record<string, string>> = {}): Promise<readonly PodSandbox[]> {
    const { items } = await this.#call<{ items?: PodSandbox[] }>("ListPodSandbox", {
      filter: { labelSelector: labels },
    });
    return (items ?? []).map(withMaps);
  }

  async podSandboxStatus(podSandboxId: string): Promise<PodSandboxStatus> {
    const { status } = await this.#call<{ status: PodSandboxStatus | null }>("PodSandboxStatus", {
      podSandboxId,
    });
    return withMaps(present("PodSandboxStatus", status));
  }

  /** The containers of one sandbox, or of all sandboxes. */
  async listContainers(podSandboxId = ""): Promise<readonly RuntimeContainer[]> {
    const { containers } = await this.#call<{ containers?: RuntimeContainer[] }>("ListContainers", {
      filter: { podSandboxId },
    });
    return (containers ?? []).map(withMaps);
  }

  async containerStatus(containerId: string): Promise<RuntimeContainerStatus> {
    const { status } = await this.#call<{ status: RuntimeContainerStatus | null }>("ContainerStatus", {
      containerId,
    });
    return present("ContainerStatus", status);
  }

  async listContainerStats(): Promise<readonly ContainerStats[]> {
    const { stats } = await this.#call<{ stats?: ContainerStats[] }>("ListContainerStats", {});
    return (stats ?? []).map((each) => ({ ...each, attributes: withMaps(each.attributes) }));
  }

  /**
   * Sends SIGTERM, and SIGKILL after the grace period. Resolves when the container has stopped, at
   * once if it had before.
   */
  async stopContainer(containerId: string, gracePeriodSeconds: number): Promise<void> {
    const timeoutMs = this.#callTimeoutMs + gracePeriodSeconds * 1_000;
    await this.#call("StopContainer", { containerId, timeout: gracePeriodSeconds }, timeoutMs);
  }

  /**
   * The URL of a stream. It works for one request, refused or not, within about a minute. It
   * contains a token.
   */
  async execUrl(containerId: string, command: readonly string[], streams: RequestedStreams): Promise<string> {
    return this.#urlOf("Exec", { containerId, cmd: command, ...streams });
  }

  /** Like {@link execUrl}. */
  async attachUrl(containerId: string, streams: RequestedStreams): Promise<string> {
    return this.#urlOf("Attach", { containerId, ...streams });
  }

  /** Like {@link execUrl}; only the legacy WebSocket port-forward names its ports beforehand. */
  async portForwardUrl(podSandboxId: string, ports: readonly number[]): Promise<string> {
    return this.#urlOf("PortForward", { podSandboxId, port: ports });
  }

  /**
   * Runs a command to its end. The runtime enforces `timeoutSeconds` (0: none); if it does not, the
   * call is given up a little later. The runtime truncates output at 16 MiB.
   */
  async execSync(
    containerId: string,
    command: readonly string[],
    timeoutSeconds: number,
  ): Promise<ExecResult> {
    const timeoutMs = timeoutSeconds > 0 ? timeoutSeconds * 1_000 + SLACK_MS : LONGEST_CALL_MS;
    return this.#call("ExecSync", { containerId, cmd: command, timeout: timeoutSeconds }, timeoutMs);
  }

  async #urlOf(method: "Exec" | "Attach" | "PortForward", request: object): Promise<string> {
    const { url } = await this.#call<{ url: string }>(method, request);
    if (url === "") throw new RuntimeError(method, INTERNAL, "the runtime answered without a streaming URL");
    return url;
  }

  async #call<Answer>(method: CriMethod, request: object, timeoutMs = this.#callTimeoutMs): Promise<Answer> {
    return (await this.#channel.call(method, request, timeoutMs)) as Answer;
  }
}

const INTERNAL = 13;

/** The decoder omits empty maps. */
function withMaps<Message extends object>(message: Message): Message {
  return { labels: {}, annotations: {}, ...message };
}

function present<Status>(method: CriMethod, status: Status | null): Status {
  if (status === null) throw new RuntimeError(method, INTERNAL, "the runtime answered without a status");
  return status;
}
