import { startGateway } from "../app/app.ts";
import { reloaderOf } from "../app/reload-configuration.ts";
import { startWorkers } from "../app/runtime/primary.ts";
import { surviveUncaughtExceptions } from "../app/uncaught-exceptions.ts";
import { parseConfiguration } from "../config/configuration.ts";
import { KUBE_APISERVER_FLAGS, mergeFlags } from "../config/flags.ts";
import { readText } from "../config/load-configuration.ts";
import { checkNamedFiles } from "../config/named-files.ts";
import { parseWorkers, type Workers, workerCount } from "../config/workers.ts";
import { createLogger } from "../observability/logger.ts";
import { endBySignal, helpText, parseFlags, terminationSignal } from "./flags.ts";
import { authenticationWarning, listeningLines } from "./serve-notices.ts";
import { UsageError } from "./usage-error.ts";

const HELP = `${helpText("sluice serve --config FILE [flags]", [
  ["--config FILE", "GatewayConfiguration (sluice.dev/v1alpha1)"],
  ["--workers N|auto", "processes that serve; auto is one for each core"],
])}
Flags of kube-apiserver (--kubeconfig: of the kubelet), each with a value that stands above the file's:

${KUBE_APISERVER_FLAGS.map((name) => `  --${name}\n`).join("")}`;

/** The gateway, until SIGTERM or Ctrl-C; then running sessions get the grace period, and a start that has not ended is given up. SIGHUP makes it read its configuration again. */
export async function run(args: string[]): Promise<number> {
  const { values } = parseFlags({
    args,
    options: {
      config: { type: "string" },
      workers: { type: "string" },
      help: { type: "boolean", short: "h" },
      ...Object.fromEntries(KUBE_APISERVER_FLAGS.map((name) => [name, { type: "string" as const }])),
    },
  });
  const { config, help, workers, ...flags } = values as {
    config?: string;
    help?: boolean;
    workers?: string;
  } & Record<string, string>;
  if (help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (config === undefined)
    throw new UsageError(`--config FILE is required; sluice serve --help tells the flags`);
  const stopped = terminationSignal(["SIGTERM", "SIGINT"]);
  let isReady = false;
  void stopped.then((signal) => {
    if (isReady) return;
    process.stderr.write(`sluice serve: ${signal} before the gateway was ready\n`);
    endBySignal(signal);
  });
  const text = await readText(config);
  const configuration = mergeFlags(parseConfiguration(text, config), flags);
  await checkNamedFiles(configuration.namedFiles);
  const count = workerCount(workers === undefined ? configuration.workers : workersOf(workers));
  const logger = createLogger(configuration.logging);
  const warning = authenticationWarning(configuration.authentication);
  if (warning !== undefined) logger.warn({}, warning);
  const forWorkers = { configurationText: text, configurationFile: config, flags };
  // Until it serves there is nothing to read again, and no reason to die of it.
  let reload = async (): Promise<void> => {};
  process.on("SIGHUP", () => void reload());
  const gateway =
    count === 1
      ? await startGateway(configuration, logger)
      : await startWorkers(configuration, count, forWorkers, logger);
  isReady = true;
  reload = reloaderOf({ file: config, text, flags, gateway, logger });
  process.stdout.write(listeningLines(configuration, gateway.listening));
  const failed = new Promise<"failed">((resolve) => surviveUncaughtExceptions(() => resolve("failed")));
  const end = await Promise.race([stopped, failed]);
  reload = async () => {};
  await gateway.shutDown();
  return end === "failed" ? 1 : 0;
}

function workersOf(text: string): Workers {
  const parsed = parseWorkers(text);
  if ("problem" in parsed) throw new UsageError(`--workers ${parsed.problem}`);
  return parsed.workers;
}
