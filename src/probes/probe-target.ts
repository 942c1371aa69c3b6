import type { ContainerPort } from "../api/objects.ts";
import type { RunCommand } from "./exec-probe.ts";
import type { EnvironmentEntry } from "./expand-command.ts";

/** The target of a probe. */
export interface ProbeTarget {
  /** The pod's IP, for handlers that do not name a host. */
  readonly host: string;
  /** Resolves ports that are given by name. */
  readonly containerPorts: readonly ContainerPort[];
  /** Runs commands in the container; absent: exec probes end in an error. */
  readonly runCommand?: RunCommand | undefined;
  /** The container's `env`, for `$(NAME)` in commands. */
  readonly environment?: readonly EnvironmentEntry[] | undefined;
  /** `pod:container` for messages. */
  readonly name?: string | undefined;
}

export interface ProbeOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** The MAJOR.MINOR in `User-Agent: kube-probe/MAJOR.MINOR`. */
  readonly userAgentVersion: string;
  readonly gates: ProbeGates;
}

/**
 * Kubernetes' gates, read at every run. If one is off, its field is ignored, as by a kubelet that
 * does not know it.
 */
export interface ProbeGates {
  readonly H2CContainerProbe: boolean;
  readonly GRPCContainerProbeTLS: boolean;
}
