import { spawn } from "node:child_process";
import { keyPairOf } from "../config/key-pair.ts";
import { ERRNO_TEXTS } from "../config/system-error.ts";
import { parseYamlDocuments } from "../config/yaml-documents.ts";
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

/** Credentials from a plugin or an identity provider; certificates and keys are PEM. */
export interface PluginCredentials {
  readonly authorization: string | undefined;
  readonly certificate: string | undefined;
  readonly key: string | undefined;
  /** Milliseconds since 1970; undefined means valid until the API server refuses them. */
  readonly expiresAtMs: number | undefined;
}

const NOT_FOUND = ["ENOENT", "EACCES"];

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

interface PluginRun {
  /** The value of $KUBERNETES_EXEC_INFO. */
  readonly info: string;
  /** The plugin inherits our standard input. */
  readonly isInteractive: boolean;
  readonly timeoutMs: number;
}

/**
 * The credentials that a plugin prints. Rejects with client-go's message if it fails, or prints
 * none.
 */
export async function askExecPlugin(plugin: ExecPlugin, run: PluginRun): Promise<PluginCredentials> {
  return readExecCredential(await runPlugin(plugin, run), plugin.apiVersion);
}

/**
 * Runs a plugin and resolves with its output, read until 1 s after its exit. Rejects with
 * client-go's message if it fails. Kills it after its time or MAX_PLUGIN_OUTPUT_BYTES.
 */
function runPlugin(plugin: ExecPlugin, run: PluginRun): Promise<string> {
  const { command, args, env } = plugin;
  // Node would quote the text, which may be a secret.
  const texts = [command, ...args, ...env.flatMap(({ name, value }) => [name, value])];
  if (texts.some((text) => text.includes("\0")))
    return Promise.reject(new Error(`exec: fork/exec ${command}: invalid argument`));
  return new Promise((resolve, reject) => {
    const child = start(plugin, run);
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

/** Throws client-go's message for what Node throws rather than emits, such as E2BIG. */
function start(plugin: ExecPlugin, { info, isInteractive }: PluginRun) {
  const { command, args, env } = plugin;
  const own = Object.fromEntries(env.map(({ name, value }) => [name, value]));
  const stderr = process.stderr.isTTY === true ? "inherit" : "ignore";
  try {
    return spawn(command, args, {
      env: { ...process.env, ...own, KUBERNETES_EXEC_INFO: info },
      stdio: [isInteractive ? "inherit" : "ignore", "pipe", stderr],
    });
  } catch (error) {
    throw new Error(startFailure(plugin, error as NodeJS.ErrnoException));
  }
}

/** Go searches PATH only for names without a slash, and reports another error if it finds none. */
function startFailure({ command, installHint }: ExecPlugin, { code = "" }: NodeJS.ErrnoException): string {
  if (command.includes("/") || !NOT_FOUND.includes(code))
    return `exec: fork/exec ${command}: ${ERRNO_TEXTS[code] ?? code}`;
  const hint = installHint === undefined ? "" : `\n\n${installHint}`;
  return `exec: executable ${command} not found${NOT_INSTALLED}${hint}`;
}

/**
 * Parses a plugin's output, JSON or YAML. Throws client-go's messages
 * (plugin/pkg/client/auth/exec); none contains a value of the status.
 */
function readExecCredential(text: string, apiVersion: string): PluginCredentials {
  const credential = parsed(text);
  if (credential.kind !== "ExecCredential")
    throw new Error("decoding stdout: the kind is not ExecCredential");
  if (credential.apiVersion !== apiVersion) {
    const returned = String(credential.apiVersion).slice(0, 80);
    throw new Error(
      `exec plugin is configured to use API version ${apiVersion}, plugin returned version ${returned}`,
    );
  }
  if (credential.status === undefined || credential.status === null) {
    throw new Error("exec plugin didn't return a status field");
  }
  if (!isMap(credential.status)) throw new Error("decoding stdout: status must be a map");
  const token = textOf(credential.status, "token");
  const certificate = textOf(credential.status, "clientCertificateData");
  const key = textOf(credential.status, "clientKeyData");
  const expires = textOf(credential.status, "expirationTimestamp");
  if (expires !== undefined && !RFC3339.test(expires)) {
    throw new Error("decoding stdout: status.expirationTimestamp must be a time as RFC 3339 writes it");
  }
  if (token === undefined && certificate === undefined && key === undefined) {
    throw new Error("exec plugin didn't return a token or cert/key pair");
  }
  if ((certificate === undefined) !== (key === undefined)) {
    throw new Error("exec plugin returned only certificate or key, not both");
  }
  if (token !== undefined && !/^[\x20-\x7e]+$/.test(token)) {
    throw new Error("exec plugin returned a token that no header can hold");
  }
  checkPair(certificate, key);
  return {
    authorization: token === undefined ? undefined : `Bearer ${token}`,
    certificate,
    key,
    expiresAtMs: expires === undefined ? undefined : Date.parse(expires),
  };
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = parsedYaml(text);
  }
  if (!isMap(value)) throw new Error("decoding stdout: it is not a JSON or YAML map");
  return value;
}

/** The parser's own message would quote the secret text. */
function parsedYaml(text: string): unknown {
  try {
    return parseYamlDocuments(text, "stdout")[0]?.value;
  } catch {
    return undefined;
  }
}

/** Empty counts as absent, as in Go. */
function textOf(status: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = status[name] ?? "";
  if (typeof value !== "string") throw new Error(`decoding stdout: status.${name} must be a string`);
  return value === "" ? undefined : value;
}

function checkPair(certificate: string | undefined, key: string | undefined): void {
  if (certificate === undefined || key === undefined) return;
  try {
    keyPairOf(certificate, key);
  } catch (error) {
    throw new Error(`failed parsing client key/certificate: ${(error as Error).message}`);
  }
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
