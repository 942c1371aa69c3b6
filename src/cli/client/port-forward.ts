import { systemErrorText } from "@sluice/client/internal/config/system-error";
import { ConnectError } from "@sluice/client/internal/http/upstream/connect-error";
import { PortForwarder, type PortMapping, parsePortArgument } from "@sluice/client/internal/port-forwarder";
import { maskControls } from "../../observability/mask-controls.ts";
import { type Invocation, UsageError } from "../command.ts";
import type { command } from "../commands/port-forward.ts";
import { withTerminationSignal } from "../termination-signal.ts";
import { openConnection, parseResource } from "./connection.ts";
import { PodSource } from "./find-pods.ts";
import { PodSessions } from "./pod-sessions.ts";
import { reportError } from "./report-error.ts";

/** Forwards until Ctrl-C. A failed connection, a replaced pod or a restarted gateway does not end it. */
export async function run({ values, operands }: Invocation<typeof command.flags>): Promise<number> {
  const [resource, ...ports] = operands;
  if (resource === undefined || ports.length === 0) {
    throw new UsageError("TYPE/NAME and list of ports are required for port-forward");
  }
  const requested = ports.map(parseRequestedPort);
  const parsed = parseResource(resource);
  return await withTerminationSignal(async (stopped) => {
    const connection = await openConnection(values);
    const source = new PodSource(connection, parsed);
    const sessions = new PodSessions(connection, source);
    const mappings = async (): Promise<PortMapping[]> => {
      // A port's name is looked up in a pod that exists.
      if (requested.some(hasName)) await sessions.check([], values["pod-running-timeout"]);
      return await Promise.all(requested.map((port) => numberedPort(port, source)));
    };
    return await forward(values, sessions, mappings, stopped);
  });
}

async function forward(
  values: Invocation<typeof command.flags>["values"],
  sessions: PodSessions,
  mappings: () => Promise<readonly PortMapping[]>,
  stopped: Promise<NodeJS.Signals>,
): Promise<number> {
  let forwarder: PortForwarder | undefined;
  try {
    const ports = await mappings();
    forwarder = forwarderOf(values.address, sessions, ports);
    await sessions.check(
      ports.map(({ remote }) => remote),
      values["pod-running-timeout"],
    );
    for (const { address, local, remote } of await forwarder.start()) {
      const host = address.includes(":") ? `[${address}]` : address;
      process.stdout.write(`Forwarding from ${host}:${local} -> ${remote}\n`);
    }
    await stopped;
    return 0;
  } catch (error) {
    if (error instanceof ConnectError) return reportError(error);
    process.stderr.write(`error: ${maskControls(systemErrorText(error))}\n`);
    return 1;
  } finally {
    sessions.close();
    await forwarder?.close();
  }
}

function forwarderOf(addresses: string, sessions: PodSessions, ports: readonly PortMapping[]): PortForwarder {
  return new PortForwarder({
    addresses: addresses.split(","),
    ports,
    openStream: (remote) => sessions.openStream(remote),
    onConnection: ({ local }) => process.stdout.write(`Handling connection for ${local}\n`),
    onError: ({ local, remote }, error) =>
      process.stderr.write(
        `an error occurred forwarding ${local} -> ${remote}: ${maskControls(error.message)}\n`,
      ),
  });
}

/** The user's argument: numbers, or a name that the pod or service gives its port. */
type RequestedPort = PortMapping | { readonly local: number | undefined; readonly name: string };

/**
 * Names of ports as API servers allow them: letters, digits and hyphens, with at least one letter.
 */
const NAMED = /^(?:(\d*):)?(?=[\d-]*[a-z])([a-z\d-]{1,15})$/;

/**
 * `8080:80`, `:80`, `80`, and the same with a port's name. Throws UsageError.
 */
function parseRequestedPort(text: string): RequestedPort {
  const [, local, name] = NAMED.exec(text) ?? [];
  try {
    if (name === undefined) return parsePortArgument(text);
    return { local: local === undefined ? undefined : parsePortArgument(`${local}:1`).local, name };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function hasName(port: RequestedPort): boolean {
  return "name" in port;
}

/**
 * Looks up the number of a name at the server. If the argument is only a name, the local port gets
 * the same number, as in kubectl.
 */
async function numberedPort(port: RequestedPort, source: PodSource): Promise<PortMapping> {
  if (!("name" in port)) return port;
  const remote = await source.portNamed(port.name);
  return { local: port.local ?? remote, remote };
}
