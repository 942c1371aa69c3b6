import { ConnectError } from "@sluice/client/internal/http/upstream/connect-error";
import { type PortMapping, parsePortArgument } from "@sluice/client/internal/port-argument";
import { PortForwarder } from "@sluice/client/internal/port-forwarder";
import { maskControls } from "../../observability/mask-controls.ts";
import { type Invocation, UsageError } from "../command.ts";
import type { portForwardFlags } from "../commands/port-forward.ts";
import { withTerminationSignal } from "../termination-signal.ts";
import { openConnection, parseResource } from "./connection.ts";
import { PodSource } from "./find-pods.ts";
import { PodSessions } from "./pod-sessions.ts";
import { reportError } from "./report-error.ts";

/** Forwards until Ctrl-C. A failed connection, a replaced pod or a restarted gateway does not end it. */
export async function run({ values, operands }: Invocation<typeof portForwardFlags>): Promise<number> {
  const [resource, ...ports] = operands;
  if (resource === undefined || ports.length === 0) {
    throw new UsageError("TYPE/NAME and list of ports are required for port-forward");
  }
  const mappings = ports.map(parsePort);
  const parsed = parseResource(resource);
  return await withTerminationSignal(async (stopped) => {
    const connection = await openConnection(values);
    const sessions = new PodSessions(connection, new PodSource(connection, parsed));
    return await forward(values, sessions, mappings, stopped);
  });
}

async function forward(
  values: Invocation<typeof portForwardFlags>["values"],
  sessions: PodSessions,
  mappings: readonly PortMapping[],
  stopped: Promise<NodeJS.Signals>,
): Promise<number> {
  const forwarder = new PortForwarder({
    addresses: values.address.split(","),
    ports: mappings,
    openStream: (remote) => sessions.openStream(remote),
    onConnection: ({ local }) => process.stdout.write(`Handling connection for ${local}\n`),
    onError: ({ local, remote }, error) =>
      process.stderr.write(
        `an error occurred forwarding ${local} -> ${remote}: ${maskControls(error.message)}\n`,
      ),
  });
  try {
    await sessions.check(
      mappings.map(({ remote }) => remote),
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
    await forwarder.close();
  }
}

function parsePort(text: string): PortMapping {
  try {
    return parsePortArgument(text);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
