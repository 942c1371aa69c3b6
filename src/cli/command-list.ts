import type { FlagTable } from "../config/flag.ts";
import type { Command, Invocation } from "./command.ts";

/** Runs the command; resolves to the exit code. */
interface CommandProgram<Flags extends FlagTable = FlagTable> {
  run(invocation: Invocation<Flags>): Promise<number>;
}

/** A command by its name. Its flag table is small; its program is loaded only when it runs. */
export interface ListedCommand<Flags extends FlagTable = FlagTable> {
  readonly name: string;
  /** The command's purpose, in a few words. */
  readonly summary: string;
  readonly group: (typeof COMMAND_GROUPS)[number];
  readonly load: () => Promise<{ readonly command: Command<Flags> }>;
  readonly loadProgram: () => Promise<CommandProgram<Flags>>;
}

export const COMMAND_GROUPS = ["Try it", "Gateway", "Client", "Tools"] as const;

/** In the order that help prints. */
export const COMMANDS: readonly ListedCommand[] = [
  listed({
    name: "demo",
    summary: "two fake nodes and the gateway on loopback, with a kubeconfig to try them",
    group: "Try it",
    load: () => import("./commands/demo.ts"),
    loadProgram: () => import("./demo/demo.ts"),
  }),
  listed({
    name: "serve",
    summary: "the gateway, by a configuration file",
    group: "Gateway",
    load: () => import("./commands/serve.ts"),
    loadProgram: () => import("./serve/serve.ts"),
  }),
  listed({
    name: "check-config",
    summary: "validate a configuration or Kubernetes manifests",
    group: "Gateway",
    load: () => import("./commands/check-config.ts"),
    loadProgram: () => import("./setup/check-config.ts"),
  }),
  listed({
    name: "config",
    summary: "the JSON Schema of a configuration, for editors",
    group: "Gateway",
    load: () => import("./commands/config.ts"),
    loadProgram: () => import("./setup/config.ts"),
  }),
  listed({
    name: "rbac",
    summary: "the ClusterRole that a configuration's gateway needs",
    group: "Gateway",
    load: () => import("./commands/rbac.ts"),
    loadProgram: () => import("./setup/rbac.ts"),
  }),
  listed({
    name: "install",
    summary: "the manifests that install Sluice on a cluster",
    group: "Gateway",
    load: () => import("./commands/install.ts"),
    loadProgram: () => import("./setup/install.ts"),
  }),
  listed({
    name: "explain",
    summary: "how a request would travel, and why",
    group: "Gateway",
    load: () => import("./commands/explain.ts"),
    loadProgram: () => import("./explain/explain.ts"),
  }),
  listed({
    name: "recordings",
    summary: "list, show, verify, export and delete recordings of sessions",
    group: "Gateway",
    load: () => import("./commands/recordings.ts"),
    loadProgram: () => import("./recordings/recordings.ts"),
  }),
  listed({
    name: "replay",
    summary: "play a recording of a session in this terminal",
    group: "Gateway",
    load: () => import("./commands/replay.ts"),
    loadProgram: () => import("./recordings/replay.ts"),
  }),
  listed({
    name: "exec",
    summary: "a command in a container",
    group: "Client",
    load: () => import("./commands/exec.ts"),
    loadProgram: () => import("./client/exec.ts"),
  }),
  listed({
    name: "attach",
    summary: "the main process of a container",
    group: "Client",
    load: () => import("./commands/attach.ts"),
    loadProgram: () => import("./client/attach.ts"),
  }),
  listed({
    name: "logs",
    summary: "the logs of containers, also as they are written",
    group: "Client",
    load: () => import("./commands/logs.ts"),
    loadProgram: () => import("./client/logs.ts"),
  }),
  listed({
    name: "port-forward",
    summary: "local ports to pods and services",
    group: "Client",
    load: () => import("./commands/port-forward.ts"),
    loadProgram: () => import("./client/port-forward.ts"),
  }),
  listed({
    name: "cp",
    summary: "files and folders to and from containers",
    group: "Client",
    load: () => import("./commands/cp.ts"),
    loadProgram: () => import("./client/cp.ts"),
  }),
  listed({
    name: "sessions",
    summary: "list, watch, join and end running sessions of a gateway",
    group: "Client",
    load: () => import("./commands/sessions.ts"),
    loadProgram: () => import("./client/sessions.ts"),
  }),
  listed({
    name: "agent",
    summary: "a local address for kubectl of any age that speaks WebSocket to the server",
    group: "Client",
    load: () => import("./commands/agent.ts"),
    loadProgram: () => import("./client/agent.ts"),
  }),
  listed({
    name: "probe",
    summary: "run one container probe as the kubelet does, and show why it fails",
    group: "Tools",
    load: () => import("./commands/probe.ts"),
    loadProgram: () => import("./probe/probe.ts"),
  }),
  listed({
    name: "conformance",
    summary: "test whether a server carries Kubernetes' streams correctly",
    group: "Tools",
    load: () => import("./commands/conformance.ts"),
    loadProgram: () => import("./conformance/conformance.ts"),
  }),
  listed({
    name: "load",
    summary: "load exec, attach, port-forward or plain HTTP of any server",
    group: "Tools",
    load: () => import("./commands/load.ts"),
    loadProgram: () => import("./load/load.ts"),
  }),
  listed({
    name: "fake-node",
    summary: "one fake node, for tests and compositions",
    group: "Tools",
    load: () => import("./commands/fake-node.ts"),
    loadProgram: () => import("./demo/fake-node.ts"),
  }),
  listed({
    name: "completion",
    summary: "a completion script for bash, zsh, fish or PowerShell",
    group: "Tools",
    load: () => import("./commands/completion.ts"),
    loadProgram: () => import("./setup/completion.ts"),
  }),
];

/** Checks the program against its table's types. */
function listed<Flags extends FlagTable>(command: ListedCommand<Flags>): ListedCommand {
  return command as unknown as ListedCommand;
}
