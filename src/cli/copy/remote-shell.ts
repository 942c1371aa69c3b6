import type { InputStream } from "@sluice/client/internal/input-source";
import type { OutputStream, PartTaker } from "@sluice/client/internal/output-sink";
import { execPath, type PodReference } from "@sluice/client/internal/pod-paths";
import { SessionError } from "@sluice/client/internal/session-error";
import type { ClientConnection } from "../client/connection.ts";
import { commandExecutor } from "../client/run-command.ts";
import { CopyError } from "./copy-error.ts";

/** Bound on a program's messages; the rest is dropped. */
const MAX_TEXT_BYTES = 16 * 1024 * 1024;
const MAX_QUOTED_BYTES = 500;

export interface ShellStreams {
  readonly stdin?: InputStream | undefined;
  readonly stdout?: OutputStream | undefined;
  readonly signal?: AbortSignal | undefined;
  /** How to decode printed text: "latin1" keeps bytes, one character each. */
  readonly encoding?: "utf8" | "latin1" | undefined;
}

export interface ShellResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs programs in one container. A path is always an argument, never a part of a script. */
export class RemoteShell {
  readonly #connection: ClientConnection;
  readonly #container: PodReference;

  constructor(connection: ClientConnection, container: PodReference) {
    this.#connection = connection;
    this.#container = container;
  }

  /** Runs `sh -c SCRIPT` with `args` as `$1` and so on. Throws ConnectError and SessionError. */
  script(script: string, args: readonly string[], streams: ShellStreams = {}): Promise<ShellResult> {
    return this.command(["sh", "-c", script, "sh", ...args], streams);
  }

  async command(command: readonly string[], streams: ShellStreams = {}): Promise<ShellResult> {
    const [out, err] = [new Text(), new Text()];
    const executor = commandExecutor(this.#connection, execPath(this.#container, command));
    const stdout = streams.stdout ?? out;
    const { encoding = "utf8", ...rest } = streams;
    const { exitCode } = await executor.stream({ ...rest, stdout, stderr: err });
    return { exitCode, stdout: out.text(encoding), stderr: err.text("utf8") };
  }

  /** Like `script`; throws CopyError "remote" for an exit code other than 0. */
  async mustRun(script: string, args: readonly string[], streams: ShellStreams = {}): Promise<string> {
    const result = await this.script(script, args, streams);
    if (result.exitCode === 0) return result.stdout;
    throw remoteFailure(result);
  }
}

export function remoteFailure({ exitCode, stderr }: ShellResult): CopyError {
  const said = stderr.trim().slice(-MAX_QUOTED_BYTES);
  return new CopyError("remote", `in the container, exit code ${exitCode}${said === "" ? "" : `: ${said}`}`);
}

/** Whether the container lacks the program: runtimes report a failure, shells an exit code. */
export function isMissingProgram(error: unknown): boolean {
  if (!(error instanceof SessionError) || error.code !== "remote-failure") return false;
  return /not found|no such file|executable file/i.test(error.message);
}

class Text implements PartTaker {
  readonly #parts: Buffer[] = [];
  #bytes = 0;

  takePart(part: Uint8Array): undefined {
    if (this.#bytes < MAX_TEXT_BYTES) this.#parts.push(Buffer.from(part));
    this.#bytes += part.byteLength;
  }

  text(encoding: "utf8" | "latin1"): string {
    return Buffer.concat(this.#parts).toString(encoding);
  }
}

/** An input of exactly these bytes. */
export async function* bytesInput(bytes: Buffer): AsyncGenerator<Uint8Array, void, void> {
  yield bytes;
}
