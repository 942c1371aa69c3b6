import { goQuote } from "@sluice/client/internal/api/go-json";
import type { ContainerPort } from "../api/objects.ts";

/**
 * The number of a probe's port: the name of a container port, else a decimal. Throws Error in the
 * kubelet's words; such a probe counts as an error, not a failure, and restarts nothing.
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
    throw new Error(`strconv.Atoi: parsing ${goQuote(name)}: invalid syntax`);
  }
  return Number(name);
}
