import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import { systemErrorText } from "@sluice/client/internal/config/system-error";
import { loadKubeconfig } from "@sluice/client/internal/kubernetes/kubeconfig";
import { createSelfSignedCertificate } from "@sluice/client/internal/net/self-signed";
import { startAgent } from "../../app/agent.ts";
import {
  type KubeconfigPlace,
  KubeconfigTakenError,
  randomToken,
} from "../../legs/agent/agent-kubeconfig.ts";
import { createLogger } from "../../observability/logger.ts";
import { maskControls } from "../../observability/mask-controls.ts";
import { type Invocation, UsageError } from "../command.ts";
import type { command } from "../commands/agent.ts";
import { requireLoopback } from "../loopback.ts";
import { withTerminationSignal } from "../termination-signal.ts";
import { type ClientConnection, overridesOf, verbosityOf } from "./connection.ts";

/**
 * Offers clients of any version a local address until SIGTERM, Ctrl-C or the end of the terminal.
 */
export async function run({ values }: Invocation<typeof command.flags>): Promise<number> {
  requireLoopback(values.address, "any client with the agent's token has the rights of your kubeconfig");
  const place = { file: values["write-kubeconfig"], folder: values.dir };
  if (place.file !== undefined && place.folder !== undefined) {
    throw new UsageError("--dir and --write-kubeconfig exclude each other");
  }
  const verbosity = verbosityOf(values.v);
  try {
    return await withTerminationSignal((stopped) => serve(values, { place, verbosity }, stopped));
  } catch (error) {
    if (error instanceof UsageError || error instanceof ConfigurationError) throw error;
    if (error instanceof KubeconfigTakenError) throw new UsageError(error.message);
    // Errors of ports, files and credential plugins; their messages contain no secret.
    process.stderr.write(`sluice agent: ${maskControls(systemErrorText(error))}\n`);
    return 1;
  }
}

interface Settings {
  readonly place: KubeconfigPlace;
  readonly verbosity: ClientConnection["verbosity"];
}

type Values = Invocation<typeof command.flags>["values"];

async function serve(
  values: Values,
  { place, verbosity }: Settings,
  stopped: Promise<NodeJS.Signals>,
): Promise<number> {
  const { port, "admin-port": admin } = values;
  const overrides = overridesOf(values);
  const kubeconfig = await loadKubeconfig(values.kubeconfig || undefined, overrides);
  const address = values.address === "localhost" ? "127.0.0.1" : values.address;
  const { certPem: cert, keyPem: key } = await createSelfSignedCertificate([address], "sluice-agent");
  const token = randomToken();
  const agent = await startAgent({
    kubeconfig,
    listen: { address, port },
    admin: admin === undefined ? undefined : { address: "127.0.0.1", port: admin },
    tls: { cert, key },
    token,
    logger: createLogger({ level: "error" }),
    trace: verbosity.trace,
    note: verbosity.note,
    place,
  });
  try {
    process.stdout.write(`ready ${agent.kubeconfigFile}\n`);
    if (agent.adminUrl !== undefined)
      process.stderr.write(`sessions, health and metrics: ${agent.adminUrl}\n`);
    verbosity.note(`${await stopped}: ending`);
    return 0;
  } finally {
    await agent.shutDown();
  }
}
