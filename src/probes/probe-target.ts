import type { ContainerPort } from "../api/objects.ts";
import type { RunCommand } from "./exec-probe.ts";
import type { EnvironmentEntry } from "./expand-command.ts";

/** What is probed. */
export interface ProbeTarget {
  /** The pod's IP, for handlers that name no host. */
  readonly host: string;
  /** For ports that are given by name. */
  readonly containerPorts: readonly ContainerPort[];
  /** How commands are run in the container; absent: exec probes are errored. */
  readonly runCommand?: RunCommand | undefined;
  /** The container's `env`, for `$(NAME)` in commands. */
  readonly environment?: readonly EnvironmentEntry[] | undefined;
  /** `pod:container` for messages. */
  readonly name?: string | undefined;
}

export interface ProbeOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** MAJOR.MINOR of `User-Agent: kube-probe/MAJOR.MINOR`. */
  readonly userAgentVersion: string;
  readonly gates: ProbeGates;
}

/** Kubernetes' gates, asked at every run: with one off its field means nothing, as in a kubelet that does not know it. */
export interface ProbeGates {
  readonly H2CContainerProbe: boolean;
  readonly GRPCContainerProbeTLS: boolean;
}
