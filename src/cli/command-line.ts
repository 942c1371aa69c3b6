// src/cli: one file or folder for each command; flags; what people read

import { ConfigurationError } from "../config/configuration-error.ts";
import { NotInstalledError } from "../config/optional-package.ts";
import { SLUICE_VERSION } from "../config/version.ts";
import { CredentialsError } from "../kubernetes/credentials-error.ts";
import { UsageError } from "./usage-error.ts";

/** One subcommand. `run` resolves to the exit code: 0 ok, 1 failed, 2 usage or configuration. */
interface Command {
  readonly summary: string;
  readonly load: () => Promise<{ run(args: string[]): Promise<number> }>;
}

/** Loaded only when they are run, so that `sluice --help` does not wait for modules that it does not need. */
const commands: Readonly<Record<string, Command>> = {
  demo: {
    summary: "two fake nodes and the gateway on loopback, with a kubeconfig to try them",
    load: () => import("./demo.ts"),
  },
  serve: { summary: "the gateway, by a configuration file", load: () => import("./serve.ts") },
  probe: {
    summary: "run one container probe as the kubelet does, and say why it fails",
    load: () => import("./probe.ts"),
  },
  exec: { summary: "a command in a container", load: () => import("./exec.ts") },
  attach: { summary: "the main process of a container", load: () => import("./attach.ts") },
  "port-forward": { summary: "local ports to pods and services", load: () => import("./port-forward.ts") },
  cp: { summary: "files and folders to and from containers", load: () => import("./cp.ts") },
  agent: {
    summary: "a local address that any kubectl may use and that speaks WebSocket onward",
    load: () => import("./agent.ts"),
  },
  explain: { summary: "how a request would travel, and why", load: () => import("./explain.ts") },
  "check-config": {
    summary: "validate a configuration or Kubernetes manifests",
    load: () => import("./check-config.ts"),
  },
  conformance: {
    summary: "does a server carry Kubernetes' streams right?",
    load: () => import("./conformance.ts"),
  },
  load: {
    summary: "load exec, attach, port-forward or plain HTTP of any server",
    load: () => import("./load.ts"),
  },
  "fake-node": { summary: "one fake node, for tests and compositions", load: () => import("./fake-node.ts") },
};

/** Runs `sluice ARGS` and resolves to the exit code. */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined || name === "help" || name === "--help" || name === "-h") {
    process.stdout.write(usage());
    return name === undefined ? 2 : 0;
  }
  if (name === "version" || name === "--version") {
    process.stdout.write(`sluice ${SLUICE_VERSION}, Node ${process.version}\n`);
    return 0;
  }
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined) {
    process.stderr.write(`sluice: unknown command ${JSON.stringify(name)}\n\n${usage()}`);
    return 2;
  }
  try {
    const { run } = await command.load();
    return await run(rest);
  } catch (error) {
    if (error instanceof UsageError || error instanceof ConfigurationError) {
      process.stderr.write(`sluice ${name}: ${error.message}\n`);
      return 2;
    }
    if (!isSystemError(error) && !isForTheUser(error)) throw error;
    process.stderr.write(`sluice ${name}: ${error.message}\n`);
    // As an error that nobody catches would: what was started before it has nobody to end it.
    process.exit(1);
  }
}

/** Messages that say what to do, of faults that are not ours. */
function isForTheUser(error: unknown): error is Error {
  return error instanceof NotInstalledError || error instanceof CredentialsError;
}

/** A port in use, a folder that may not be written: its words say all, its stack nothing. Any other error is a defect of ours. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error && "code" in error;
}

function usage(): string {
  const lines = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(14)}${summary}\n`);
  return `usage: sluice COMMAND [flags]\n\n${lines.join("")}\nsluice COMMAND --help tells the flags of a command, sluice --version the version.\n`;
}
