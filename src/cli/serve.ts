import { startGateway } from "../app.ts";
import { KUBE_APISERVER_FLAGS, mergeFlags } from "../config/flags.ts";
import { loadConfiguration } from "../config/load-configuration.ts";
import { helpText, parseFlags, terminationSignal } from "./flags.ts";
import { UsageError } from "./usage-error.ts";

const HELP = helpText("sluice serve --config FILE [flags]", [
  ["--config FILE", "GatewayConfiguration (sluice.dev/v1alpha1)"],
  ...KUBE_APISERVER_FLAGS.map((name): [string, string] => [
    `--${name} VALUE`,
    "as kube-apiserver's; stands above the file",
  ]),
]);

/** The gateway, until SIGTERM or Ctrl-C; then running sessions get the grace period. */
export async function run(args: string[]): Promise<number> {
  const { values } = parseFlags({
    args,
    options: {
      config: { type: "string" },
      help: { type: "boolean" },
      ...Object.fromEntries(KUBE_APISERVER_FLAGS.map((name) => [name, { type: "string" as const }])),
    },
  });
  const { config, help, ...flags } = values as { config?: string; help?: boolean } & Record<string, string>;
  if (help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (config === undefined) throw new UsageError(`--config FILE is required\n\n${HELP}`);
  const stopped = terminationSignal();
  const gateway = await startGateway(mergeFlags(await loadConfiguration(config), flags));
  await stopped;
  await gateway.shutDown();
  return 0;
}
