import { goQuote } from "@sluice/client/internal/api/go-json";
import type { ContainerPort } from "../api/objects.ts";
import type { RunCommand } from "./exec-probe.ts";

/** The target of a probe. */
export interface ProbeTarget {
  /** The pod's IP, for handlers that do not name a host. */
  readonly host: string;
  /** Resolves ports that probes give by name. */
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
 * Kubernetes' gates, read at every run. If a gate is off, its field is ignored, as by a kubelet
 * that does not know it.
 */
export interface ProbeGates {
  readonly H2CContainerProbe: boolean;
  readonly GRPCContainerProbeTLS: boolean;
}

/**
 * The number of a probe's port: the name of a container port, else a decimal. Throws Error;
 * such a probe counts as an error, not a failure, and restarts nothing.
 */
export function resolveContainerPort(
  port: number | string,
  containerPorts: readonly ContainerPort[],
): number {
  const number = typeof port === "number" ? port : numberOf(port, containerPorts);
  if (number > 0 && number < 65_536) return number;
  throw new Error(`invalid port number: ${number}`);
}

function numberOf(name: string, containerPorts: readonly ContainerPort[]): number {
  const named = containerPorts.find((port) => port.name === name);
  if (named !== undefined) return named.containerPort;
  if (!/^[+-]?[0-9]+$/.test(name)) {
    throw new Error(`no container port has the name ${goQuote(name)}`);
  }
  return Number(name);
}

/** One entry of a container's `env`; only literal values count here. */
interface EnvironmentEntry {
  readonly name?: unknown;
  readonly value?: unknown;
}

/**
 * Expands `$(NAME)` in a probe's command like the kubelet, from the container's literal `env`
 * values only. `$$(NAME)` becomes `$(NAME)`; an unknown name stays as written.
 */
export function expandCommand(
  command: readonly string[],
  environment: readonly EnvironmentEntry[] = [],
): readonly string[] {
  const values = new Map<string, string>();
  for (const { name, value } of environment) {
    if (typeof name === "string") values.set(name, typeof value === "string" ? value : "");
  }
  return command.map((argument) => {
    // No `$(` can close after the last `)`, so the search stops there.
    const end = argument.lastIndexOf(")") + 1;
    const expanded = argument
      .slice(0, end)
      .replace(/\$\$|\$\(([^)]*)\)/g, (whole, name: string | undefined) => {
        if (whole === "$$") return "$";
        return values.get(name ?? "") ?? whole;
      });
    return expanded + argument.slice(end).replaceAll("$$", () => "$");
  });
}
