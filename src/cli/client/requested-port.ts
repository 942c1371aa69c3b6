import { type PortMapping, parsePortArgument } from "@sluice/client/internal/port-argument";
import { UsageError } from "../command.ts";
import type { PodSource } from "./find-pods.ts";

/** What the user wrote: numbers, or a name that the pod or service gives its port. */
export type RequestedPort = PortMapping | { readonly local: number | undefined; readonly name: string };

/** As API servers allow names of ports: letters, digits and hyphens, a letter among them. */
const NAMED = /^(?:(\d*):)?(?=[\d-]*[a-z])([a-z\d-]{1,15})$/;

/** `8080:80`, `:80`, `80`, and the same with a port's name. Throws UsageError with client-go's message. */
export function parseRequestedPort(text: string): RequestedPort {
  const [, local, name] = NAMED.exec(text) ?? [];
  try {
    if (name === undefined) return parsePortArgument(text);
    return { local: local === undefined ? undefined : parsePortArgument(`${local}:1`).local, name };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

export function hasName(port: RequestedPort): boolean {
  return "name" in port;
}

/** Asks the server for the number of a name. A name alone listens on that number, as kubectl does. */
export async function numberedPort(port: RequestedPort, source: PodSource): Promise<PortMapping> {
  if (!("name" in port)) return port;
  const remote = await source.portNamed(port.name);
  return { local: port.local ?? remote, remote };
}
