import { ConnectError } from "@sluice/client/internal/http/upstream/connect-error";
import type { PortMapping } from "@sluice/client/internal/port-argument";
import { PortForwarder } from "@sluice/client/internal/port-forwarder";
import { maskControls } from "../../observability/mask-controls.ts";
import { type Invocation, UsageError } from "../command.ts";
import type { portForwardFlags } from "../commands/port-forward.ts";
import { withTerminationSignal } from "../termination-signal.ts";
import { openConnection, parseResource } from "./connection.ts";
import { PodSource } from "./find-pods.ts";
import { PodSessions } from "./pod-sessions.ts";
import { reportError } from "./report-error.ts";
import { hasName, numberedPort, parseRequestedPort } from "./requested-port.ts";

/** Forwards until Ctrl-C. A failed connection, a replaced pod or a restarted gateway does not end it. */
export async function run({ values, operands }: Invocation<typeof portForwardFlags>): Promise<number> {
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
      // A name is looked up in a pod that is there.
      if (requested.some(hasName)) await sessions.check([], values["pod-running-timeout"]);
      return await Promise.all(requested.map((port) => numberedPort(port, source)));
    };
    return await forward(values, sessions, mappings, stopped);
  });
}

async function forward(
  values: Invocation<typeof portForwardFlags>["values"],
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
    process.stderr.write(`error: ${maskControls((error as Error).message)}\n`);
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
