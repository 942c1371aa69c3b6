import {
  encodeStatus,
  exitCodeStatus,
  internalErrorStatus,
  type RemoteCommandVersion,
  type RequestedStreams,
  specOf,
  successStatus,
} from "@sluice/protocols/remotecommand";
import type { CommandExit } from "./command-process.ts";
import type { StartProcess } from "./command-session.ts";

export interface LastWordOptions {
  readonly version: RemoteCommandVersion;
  readonly subresource: "exec" | "attach";
  readonly argv: readonly string[];
}

/** The final content of the error stream; empty for success in the text versions. */
export function failureFrame(exit: CommandExit, options: LastWordOptions): Uint8Array {
  const isTranslated = specOf(options.version).hasClose;
  if (exit.type === "failed") {
    const deed = options.subresource === "exec" ? "executing command in" : "attaching to";
    const message = `error ${deed} container: ${exit.message}`;
    if (!specOf(options.version).hasStatusJson) return new TextEncoder().encode(message);
    // The kubelet's translator wraps the runtime's Status once more.
    return encodeStatus(internalErrorStatus(isTranslated ? `Internal error occurred: ${message}` : message));
  }
  if (exit.code === 0) {
    return specOf(options.version).hasStatusJson ? encodeStatus(successStatus()) : new Uint8Array(0);
  }
  const status = exitCodeStatus(
    exit.code,
    isTranslated ? translatorCause(exit.code) : runtimeCause(exit.code, options),
  );
  if (specOf(options.version).hasStatusJson) return encodeStatus(status);
  return new TextEncoder().encode(status.message);
}

function translatorCause(code: number): string {
  return `command terminated with exit code ${code}`;
}

function runtimeCause(code: number, { argv }: LastWordOptions): string {
  return `error executing command [${argv.join(" ")}], exit code ${code}`;
}

/** One exec or attach request, whatever protocol carries it. */
export interface CommandService extends LastWordOptions {
  readonly requested: RequestedStreams;
  readonly start: StartProcess;
}
