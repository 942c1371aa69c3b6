import type { InputStream } from "../../client/input-source.ts";
import type { OutputStream, PartTaker } from "../../client/output-sink.ts";
import { execPath, type PodReference } from "../../client/pod-paths.ts";
import { SessionError } from "../../client/session-error.ts";
import type { ClientConnection } from "../client/connection.ts";
import { commandExecutor } from "../client/run-command.ts";
import { CopyError } from "./copy-error.ts";

/** What a program says of itself; more is dropped. */
const MAX_TEXT_BYTES = 16 * 1024 * 1024;
const MAX_QUOTED_BYTES = 500;

export interface ShellStreams {
  readonly stdin?: InputStream | undefined;
  readonly stdout?: OutputStream | undefined;
  readonly signal?: AbortSignal | undefined;
  /** What the printed text is read as: "latin1" keeps bytes, one a character. */
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

  /** `sh -c SCRIPT`, whose `$1` and so on are `args`. Throws ConnectError and SessionError. */
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

  /** As `script`; throws CopyError "remote" for an exit code other than 0. */
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

/** The container has no such program: what runtimes say of it is a failure, or the code that shells give. */
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

/** An input that ends after these bytes. */
export async function* bytesInput(bytes: Buffer): AsyncGenerator<Uint8Array, void, void> {
  yield bytes;
}
