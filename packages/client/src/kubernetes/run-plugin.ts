import { spawn } from "node:child_process";
import type { ExecPlugin } from "./kubeconfig-entries.ts";

/**
 * A plugin's standard output; credentials with long certificate chains take tens of kilobytes. Past
 * it the plugin is killed.
 */
const MAX_PLUGIN_OUTPUT_BYTES = 1024 * 1024;

/** How long a plugin's children may keep its pipe open after it exits. Past it the output so far counts. */
const PLUGIN_PIPE_MS = 1_000;

const NOT_INSTALLED = `

It looks like you are trying to use a client-go credential plugin that is not installed.

To learn more about this feature, consult the documentation available at:
      https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins`;

interface PluginRun {
  /** The value of $KUBERNETES_EXEC_INFO. */
  readonly info: string;
  /** The plugin inherits our standard input. */
  readonly isInteractive: boolean;
  readonly timeoutMs: number;
}

/**
 * Runs a plugin and resolves with its output, read until 1 s after its exit. Rejects with
 * client-go's message if it fails. Kills it after its time or MAX_PLUGIN_OUTPUT_BYTES.
 */
export function runPlugin(plugin: ExecPlugin, run: PluginRun): Promise<string> {
  const { command, args, env } = plugin;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      env: {
        ...process.env,
        ...Object.fromEntries(env.map(({ name, value }) => [name, value])),
        KUBERNETES_EXEC_INFO: run.info,
      },
      stdio: [
        run.isInteractive ? "inherit" : "ignore",
        "pipe",
        process.stderr.isTTY === true ? "inherit" : "ignore",
      ],
    });
    const chunks: Buffer[] = [];
    let length = 0;
    const giveUp = (message: string) => {
      child.kill("SIGKILL");
      // The plugin's children may still hold the pipe open.
      child.stdout.destroy();
      reject(new Error(message));
    };
    const timer = setTimeout(
      () => giveUp(`exec: executable ${command} gave no answer in ${run.timeoutMs / 1_000} s`),
      run.timeoutMs,
    );
    child.stdout.on("data", (chunk: Buffer) => {
      length += chunk.byteLength;
      if (length > MAX_PLUGIN_OUTPUT_BYTES)
        giveUp(`exec: it printed more than ${MAX_PLUGIN_OUTPUT_BYTES} bytes`);
      else chunks.push(chunk);
    });
    child.on("error", (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      reject(new Error(startFailure(plugin, error)));
    });
    child.once("exit", () => {
      const pipeTimer = setTimeout(() => child.stdout.destroy(), PLUGIN_PIPE_MS);
      child.once("close", () => clearTimeout(pipeTimer));
    });
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      if (code === 0) resolve(Buffer.concat(chunks).toString("utf8"));
      // Go reports exit code -1 for a process that a signal ended.
      else
        reject(new Error(`exec: executable ${command} failed with exit code ${signal === null ? code : -1}`));
    });
  });
}

/** Go searches PATH only for names without a slash, and reports another error for those. */
function startFailure({ command, installHint }: ExecPlugin, { code }: NodeJS.ErrnoException): string {
  const reason =
    code === "ENOENT" ? "no such file or directory" : code === "EACCES" ? "permission denied" : code;
  if (command.includes("/")) return `exec: fork/exec ${command}: ${reason}`;
  const hint = installHint === undefined ? "" : `\n\n${installHint}`;
  return `exec: executable ${command} not found${NOT_INSTALLED}${hint}`;
}
