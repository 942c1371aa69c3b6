import { EventEmitter, once } from "node:events";
import {
  isBefore,
  type PodLogOptions,
  parseLogTime,
  withNineDigits,
} from "@sluice/client/internal/api/pod-log-options";
import type { RequestedStreams } from "@sluice/protocols/remotecommand";
import type { CommandExit, CommandProcess, CommandProcessHandler } from "./command-process.ts";
import type { FakePod } from "./fake-pod.ts";
import type { FakeNodeLimits } from "./limits.ts";
import { startCommand } from "./start-command.ts";

/** containerd's max_container_log_line_size: longer lines are stored in parts. */
const MAX_PART_BYTES = 16 * 1024;

/** The overhead of each entry, so that the number of empty lines is bounded, too. */
const ENTRY_BYTES = 64;

const NEWLINE = 0x0a;

/** Attach always ends with success: the exit code belongs to the container. */
const END_OF_ATTACH: CommandExit = { type: "exited", code: 0 };

/** A pod with its running containers. */
export class RunningPod {
  readonly pod: FakePod;
  readonly #mainProcesses = new Map<string, MainProcess>();

  constructor(pod: FakePod, limits: FakeNodeLimits) {
    this.pod = pod;
    for (const container of pod.containers) {
      this.#mainProcesses.set(container.name, new MainProcess(container, pod.name, limits));
    }
  }

  findContainer(name: string): MainProcess | undefined {
    return this.#mainProcesses.get(name);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#mainProcesses.values()].map((main) => main.stop()));
  }
}

interface Attachment {
  readonly requested: RequestedStreams;
  readonly handler: CommandProcessHandler;
}

/**
 * A container's main process, with any number of attached clients. As in containerd, a client that
 * does not read pauses the process for all.
 */
class MainProcess {
  readonly log: ContainerLog;
  readonly #container: FakePod["containers"][number];
  readonly #attachments = new Set<Attachment>();
  readonly #pausing = new Set<Attachment>();
  readonly #process: CommandProcess | undefined;
  #hasExited = false;

  /**
   * Throws CommandStartError if the container's command cannot run, for example because of a wrong
   * configuration.
   */
  constructor(container: FakePod["containers"][number], hostname: string, limits: FakeNodeLimits) {
    this.#container = container;
    this.log = new ContainerLog(limits.maxLogBytes);
    if (container.command === undefined) return;
    const requested = { stdin: true, stdout: true, stderr: true, tty: container.tty === true };
    const { maxStdinBufferBytes } = limits;
    this.#process = startCommand(
      { argv: container.command, requested, hostname, maxStdinBufferBytes },
      {
        onOutput: (stream, part) => this.#output(stream, part),
        onOutputEnd: (stream) => this.#tell(stream, ({ handler }) => handler.onOutputEnd(stream)),
        onStdinDrain: () => {
          for (const { handler } of this.#attachments) handler.onStdinDrain();
        },
        onExit: () => this.#exited(),
      },
    );
  }

  get hasExited(): boolean {
    return this.#hasExited;
  }

  attach(requested: RequestedStreams, handler: CommandProcessHandler): CommandProcess {
    const attachment: Attachment = { requested, handler };
    this.#attachments.add(attachment);
    if (this.#hasExited) queueMicrotask(() => handler.onExit(END_OF_ATTACH));
    return {
      writeStdin: (part) => this.#process?.writeStdin(part) ?? true,
      endStdin: () => {
        if (this.#container.stdinOnce) this.#process?.endStdin();
      },
      resize: (size) => this.#process?.resize(size),
      pauseOutput: () => {
        this.#pausing.add(attachment);
        this.#process?.pauseOutput();
      },
      resumeOutput: () => this.#unpause(attachment),
      hangUp: () => {
        this.#detach(attachment);
        queueMicrotask(() => handler.onExit(END_OF_ATTACH));
      },
      kill: async () => this.#detach(attachment),
    };
  }

  async stop(): Promise<void> {
    await this.#process?.kill();
  }

  #output(stream: "stdout" | "stderr", part: Uint8Array): void {
    this.log.append(stream, part);
    this.#tell(stream, ({ handler }) => handler.onOutput(stream, part));
  }

  #tell(stream: "stdout" | "stderr", tell: (attachment: Attachment) => void): void {
    for (const attachment of this.#attachments) if (attachment.requested[stream]) tell(attachment);
  }

  #unpause(attachment: Attachment): void {
    this.#pausing.delete(attachment);
    if (this.#pausing.size === 0) this.#process?.resumeOutput();
  }

  #detach(attachment: Attachment): void {
    this.#attachments.delete(attachment);
    this.#unpause(attachment);
  }

  #exited(): void {
    this.#hasExited = true;
    this.log.close();
    for (const { handler } of this.#attachments) handler.onExit(END_OF_ATTACH);
    this.#attachments.clear();
  }
}

interface Entry {
  readonly time: string;
  readonly stream: "stdout" | "stderr";
  /** Includes the newline, except for a part of a line. */
  readonly bytes: Buffer;
}

/**
 * The output of a container's process, in lines. Past `maxBytes` the oldest lines are dropped, as
 * in a rotation.
 */
class ContainerLog {
  readonly #maxBytes: number;
  readonly #entries: Entry[] = [];
  readonly #unfinished: Record<"stdout" | "stderr", Buffer> = {
    stdout: Buffer.alloc(0),
    stderr: Buffer.alloc(0),
  };
  readonly #changes = new EventEmitter().setMaxListeners(0);
  /** The number of dropped entries, which is also the number of the first kept one. */
  #dropped = 0;
  #heldBytes = 0;
  #isOver = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  append(stream: "stdout" | "stderr", part: Uint8Array): void {
    let rest = Buffer.concat([this.#unfinished[stream], part]);
    for (let end = endOfEntry(rest); end > 0; end = endOfEntry(rest)) {
      this.#add(stream, Buffer.from(rest.subarray(0, end)));
      rest = rest.subarray(end);
    }
    this.#unfinished[stream] = Buffer.from(rest);
    this.#changes.emit("change");
  }

  /** The process has ended; followed logs end, too. */
  close(): void {
    for (const stream of ["stdout", "stderr"] as const) {
      const rest = this.#unfinished[stream];
      // Like containerd, ends a last line without a newline as a whole line.
      if (rest.length > 0) this.#add(stream, Buffer.concat([rest, Buffer.of(NEWLINE)]));
      this.#unfinished[stream] = Buffer.alloc(0);
    }
    this.#isOver = true;
    this.#changes.emit("change");
  }

  /** Yields the log in parts. A reader that is slower than the process misses lines dropped meanwhile. */
  async *read(options: PodLogOptions, signal: AbortSignal): AsyncGenerator<Buffer> {
    const { tailLines = Number.POSITIVE_INFINITY, follow, timestamps } = options;
    let remaining = options.limitBytes ?? Number.POSITIVE_INFINITY;
    let next = Math.max(0, this.#end - tailLines);
    let isAtLineStart = true;
    while (!signal.aborted) {
      next = Math.max(next, this.#dropped);
      const entry = this.#entries[next - this.#dropped];
      if (entry === undefined) {
        if (!follow || this.#isOver) return;
        await once(this.#changes, "change", { signal }).catch(() => {});
        continue;
      }
      next += 1;
      if (!isWanted(entry, options)) continue;
      const head = timestamps && isAtLineStart ? `${withNineDigits(entry.time)} ` : "";
      isAtLineStart = entry.bytes.at(-1) === NEWLINE;
      const whole = Buffer.concat([Buffer.from(head), entry.bytes]);
      yield whole.subarray(0, remaining);
      remaining -= whole.length;
      if (remaining <= 0) return;
    }
  }

  get #end(): number {
    return this.#dropped + this.#entries.length;
  }

  #add(stream: "stdout" | "stderr", bytes: Buffer): void {
    this.#entries.push({ time: new Date().toISOString(), stream, bytes });
    this.#heldBytes += bytes.length + ENTRY_BYTES;
    while (this.#heldBytes > this.#maxBytes) {
      this.#heldBytes -= (this.#entries.shift()?.bytes.length ?? 0) + ENTRY_BYTES;
      this.#dropped += 1;
    }
  }
}

/** 0 if the bytes contain neither a complete line nor a part of full length. */
function endOfEntry(bytes: Buffer): number {
  const end = bytes.subarray(0, MAX_PART_BYTES).indexOf(NEWLINE) + 1;
  return end === 0 && bytes.length >= MAX_PART_BYTES ? MAX_PART_BYTES : end;
}

function isWanted({ time, stream }: Entry, { since, stream: wanted }: PodLogOptions): boolean {
  if (wanted !== undefined && wanted !== stream) return false;
  const written = parseLogTime(time);
  return since === undefined || (written !== undefined && !isBefore(written, since));
}
