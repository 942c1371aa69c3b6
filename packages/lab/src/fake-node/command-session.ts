import type { Duplex } from "node:stream";
import {
  encodeStatus,
  exitCodeStatus,
  internalErrorStatus,
  type RemoteCommandVersion,
  type RequestedStreams,
  specOf,
  successStatus,
  type TerminalSize,
} from "@sluice/protocols/remotecommand";
import type { CommandExit, CommandProcess, CommandProcessHandler } from "./command-process.ts";
import type { FakeNodeLimits } from "./limits.ts";
import { CommandStartError } from "./start-command.ts";

/** The destination of a session's output: SPDY streams or WebSocket channels. */
export interface CommandTransport {
  readonly socket: Duplex;
  sendOutput(stream: "stdout" | "stderr", part: Uint8Array): void;
  endOutput(stream: "stdout" | "stderr"): void;
  /** Sends the status after all output, and ends the connection so that the client receives everything. */
  finish(exit: CommandExit): void;
  /** Ends the connection at once. */
  abort(): void;
}

type StartProcess = (handler: CommandProcessHandler, size: TerminalSize | undefined) => CommandProcess;

/**
 * One exec or attach over any protocol. Output that the client does not read pauses the process;
 * input that the process does not read pauses the connection.
 */
export class CommandSession implements CommandProcessHandler {
  readonly #transport: CommandTransport;
  readonly #startProcess: StartProcess;
  readonly #limits: FakeNodeLimits;
  readonly #gate: PauseGate;
  /** Called when the process has ended, too; until then the node can abort the session. */
  readonly #onOver: () => void;
  #process: CommandProcess | undefined;
  #earlyInput: Uint8Array[] = [];
  #earlyBytes = 0;
  #hasEarlyEnd = false;
  /** The newest size that arrived before the process started. */
  #earlySize: TerminalSize | undefined;
  #isOver = false;
  #hasExited = false;

  constructor(transport: CommandTransport, start: StartProcess, limits: FakeNodeLimits, onOver: () => void) {
    this.#transport = transport;
    this.#startProcess = start;
    this.#limits = limits;
    this.#gate = new PauseGate(transport.socket);
    this.#onOver = onOver;
    transport.socket.on("drain", () => this.#process?.resumeOutput());
  }

  start(): void {
    if (this.#isOver) return;
    try {
      this.#process = this.#startProcess(this, this.#earlySize);
    } catch (error) {
      if (!(error instanceof CommandStartError)) throw error;
      this.onExit({ type: "failed", message: error.message });
      return;
    }
    const early = this.#earlyInput;
    this.#earlyInput = [];
    this.#gate.release(this);
    if (this.#earlySize !== undefined) this.#process.resize(this.#earlySize);
    for (const part of early) this.receiveStdin(part);
    if (this.#hasEarlyEnd) this.#process.endStdin();
  }

  receiveStdin(part: Uint8Array): void {
    if (this.#isOver || part.length === 0) return;
    if (this.#process === undefined) {
      this.#earlyInput.push(part);
      this.#earlyBytes += part.length;
      if (this.#earlyBytes > this.#limits.maxStdinBufferBytes) this.#gate.hold(this);
    } else if (!this.#process.writeStdin(part)) this.#gate.hold(this);
  }

  receiveStdinEnd(): void {
    if (this.#process === undefined) this.#hasEarlyEnd = true;
    else this.#process.endStdin();
  }

  receiveResize(size: TerminalSize): void {
    if (this.#process === undefined) this.#earlySize = size;
    else this.#process.resize(size);
  }

  /** The client closed or lost the connection. */
  clientGone(): void {
    if (this.#isOver) return;
    this.#stopCarrying();
    if (this.#process === undefined) this.#onOver();
    else this.#process.hangUp();
  }

  /** The node shuts down, and nothing of the session may survive it. */
  async abort(): Promise<void> {
    this.#stopCarrying();
    this.#transport.abort();
    if (!this.#hasExited) await this.#process?.kill();
  }

  onOutput(stream: "stdout" | "stderr", part: Uint8Array): void {
    if (this.#isOver) return;
    const { socket } = this.#transport;
    socket.cork();
    this.#transport.sendOutput(stream, part);
    socket.uncork();
    if (socket.writableNeedDrain) this.#process?.pauseOutput();
  }

  onOutputEnd(stream: "stdout" | "stderr"): void {
    if (!this.#isOver) this.#transport.endOutput(stream);
  }

  onStdinDrain(): void {
    this.#gate.release(this);
  }

  onExit(exit: CommandExit): void {
    this.#hasExited = true;
    this.#onOver();
    if (this.#isOver) return;
    this.#stopCarrying();
    const { socket } = this.#transport;
    socket.cork();
    this.#transport.finish(exit);
    socket.uncork();
  }

  #stopCarrying(): void {
    this.#isOver = true;
    this.#gate.release(this);
  }
}

/** Stops reading a connection while any stream holds it. SPDY and WebSocket have no other backpressure. */
export class PauseGate {
  readonly #socket: Duplex;
  readonly #holders = new Set<unknown>();

  constructor(socket: Duplex) {
    this.#socket = socket;
  }

  hold(holder: unknown): void {
    this.#holders.add(holder);
    this.#socket.pause();
  }

  release(holder: unknown): void {
    if (this.#holders.delete(holder) && this.#holders.size === 0) this.#socket.resume();
  }
}

interface LastWordOptions {
  readonly version: RemoteCommandVersion;
  readonly subresource: "exec" | "attach";
  readonly argv: readonly string[];
}

/** The final content of the error stream; empty for success in the versions that send text. */
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

/** One exec or attach request, over any protocol. */
export interface CommandService extends LastWordOptions {
  readonly requested: RequestedStreams;
  readonly start: StartProcess;
}
