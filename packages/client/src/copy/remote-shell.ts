import type { InputStream } from "../sessions/input-source.ts";
import type { OutputStream, PartTaker } from "../sessions/output-sink.ts";
import { CopyError } from "./copy-error.ts";

/** Bound on a program's messages; the rest is dropped. */
const MAX_TEXT_BYTES = 16 * 1024 * 1024;
const MAX_QUOTED_BYTES = 500;

interface ShellStreams {
  readonly stdin?: InputStream | undefined;
  readonly stdout?: OutputStream | undefined;
  /** How to decode printed text: "latin1" keeps bytes, one character each. */
  readonly encoding?: "utf8" | "latin1" | undefined;
}

interface ShellResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command in the container. Throws ConnectError and SessionError. */
type RunCommand = (
  command: readonly string[],
  streams: Omit<ShellStreams, "encoding"> & {
    readonly stderr: OutputStream;
    readonly signal?: AbortSignal | undefined;
  },
) => Promise<{ readonly exitCode: number }>;

/** Runs programs in one container. A path is always an argument, never a part of a script. */
export class RemoteShell {
  readonly #run: RunCommand;
  readonly #signal: AbortSignal | undefined;

  /** `signal` ends every command but those that clean up. */
  constructor(run: RunCommand, signal?: AbortSignal) {
    this.#run = run;
    this.#signal = signal;
  }

  /** Runs `sh -c SCRIPT` with `args` as `$1` and so on. Throws ConnectError and SessionError. */
  script(script: string, args: readonly string[], streams: ShellStreams = {}): Promise<ShellResult> {
    return this.#command(["sh", "-c", script, "sh", ...args], streams, this.#signal);
  }

  /** Like `script`, without a result: a failure changes nothing for the caller. */
  async cleanUp(script: string, args: readonly string[]): Promise<void> {
    await this.#command(["sh", "-c", script, "sh", ...args], {}, undefined).catch(() => {});
  }

  async #command(
    command: readonly string[],
    streams: ShellStreams,
    signal: AbortSignal | undefined,
  ): Promise<ShellResult> {
    const [out, err] = [new Text(), new Text()];
    const stdout = streams.stdout ?? out;
    const { encoding = "utf8", ...rest } = streams;
    const { exitCode } = await this.#run(command, { ...rest, stdout, stderr: err, signal });
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
