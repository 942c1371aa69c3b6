import type { RequestedStreams } from "@sluice/protocols/remotecommand";
import type {
  CommandExit,
  CommandProcess,
  CommandProcessHandler,
  OutputStream,
  ProcessEnvironment,
} from "./command-process.ts";
import { ContainerLog } from "./container-log.ts";
import type { FakeContainer, FakePod } from "./fake-pod.ts";
import type { FakeNodeLimits } from "./limits.ts";
import { startCommand } from "./start-command.ts";

/** Attach always ends with success: the exit code belongs to the container. */
const END_OF_ATTACH: CommandExit = { type: "exited", code: 0 };

/** A pod with its running containers. */
export class RunningPod {
  readonly pod: FakePod;
  readonly #mainProcesses = new Map<string, MainProcess>();

  constructor(pod: FakePod, limits: FakeNodeLimits) {
    this.pod = pod;
    for (const container of pod.containers) {
      this.#mainProcesses.set(container.name, new MainProcess(container, this.environment, limits));
    }
  }

  get environment(): ProcessEnvironment {
    return { hostname: this.pod.name };
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
 * A container's main process, with any number of attached clients. As in containerd, one that does
 * not read pauses the process for all.
 */
class MainProcess {
  readonly log: ContainerLog;
  readonly #container: FakeContainer;
  readonly #attachments = new Set<Attachment>();
  readonly #pausing = new Set<Attachment>();
  readonly #process: CommandProcess | undefined;
  #hasExited = false;

  /** Throws CommandStartError if the container's command cannot run, i.e. for a wrong configuration. */
  constructor(container: FakeContainer, environment: ProcessEnvironment, limits: FakeNodeLimits) {
    this.#container = container;
    this.log = new ContainerLog(limits.maxLogBytes);
    if (container.command === undefined) return;
    const requested = { stdin: true, stdout: true, stderr: true, tty: container.tty === true };
    const { maxStdinBufferBytes } = limits;
    this.#process = startCommand(
      { argv: container.command, requested, environment, maxStdinBufferBytes },
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

  #output(stream: OutputStream, part: Uint8Array): void {
    this.log.append(stream, part);
    this.#tell(stream, ({ handler }) => handler.onOutput(stream, part));
  }

  #tell(stream: OutputStream, tell: (attachment: Attachment) => void): void {
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
