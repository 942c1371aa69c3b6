import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { PassThrough, Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import {
  execPath,
  type Target,
  TunnelDialer,
  WebSocketExecutor,
} from "../../../packages/client/src/index.ts";
import { eventually } from "../eventually.ts";
import type { KubectlRunner } from "../kubectl.ts";
import { isFullRun } from "../real-parts.ts";
import { type Conversation, converse, type TwoWayService } from "../two-way-service.ts";

const POD = { namespace: "default", pod: "web", container: "main" };
const FORWARD_PATH = "/api/v1/namespaces/default/pods/web/portforward";
const CONVERSATIONS = ["echo", "answer", "greet"] as const satisfies readonly Conversation[];
const EXIT_CODE = 7;
/** The bytes of a shell's line and of a conversation, each followed by a pause. */
const LINE_BYTES = 200;
const CONVERSATION_BYTES = 20_000;
const PAUSE_MS = isFullRun ? 1_000 : 200;
/**
 * The time between two sessions of a kind that start, or end, together: 200 at once would test
 * set-ups.
 */
const APART_MS = 100;

/**
 * Keeps a number of sessions of one kind running. All continue until their turn is ended, and then
 * others replace them.
 */
export class SteadySessions {
  finished = 0;
  bytes = 0;
  lost = 0;
  resumed = 0;
  readonly faults: string[] = [];
  readonly count: number;
  readonly #loops: Promise<unknown>;
  #turn = 0;
  #turnedMs = 0;
  #opened = 0;
  #isOver = false;

  /** `session` resolves with a description of the fault; "" if there is none. */
  constructor(count: number, session: (life: SessionLife) => Promise<string>) {
    this.count = count;
    const loop = async (index: number): Promise<void> => {
      await pause(index * APART_MS);
      while (!this.#isOver) {
        const fault = await session(this.#nextLife(index)).catch(
          (error: Error) => `${error.name}: ${error.message}`,
        );
        if (fault === "") this.finished += 1;
        else this.faults.push(fault);
      }
    };
    this.#loops = Promise.all(Array.from({ length: count }, (_, index) => loop(index)));
  }

  /** True if all sessions of this turn have received an answer. */
  get areOpen(): boolean {
    return this.#opened >= this.count;
  }

  /** Lets all sessions end by themselves, and resolves when their replacements have started. */
  async endTurn(): Promise<void> {
    this.#turn += 1;
    this.#turnedMs = performance.now();
    this.#opened = 0;
    await eventually("sessions of the next turn", () => this.areOpen, { timeoutMs: 240_000 });
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    this.#turn += 1;
    this.#turnedMs = performance.now();
    await this.#loops;
  }

  #nextLife(index: number): SessionLife {
    const turn = this.#turn;
    let isOpen = false;
    return {
      isOver: () => this.#turn !== turn && performance.now() > this.#turnedMs + index * APART_MS,
      received: (bytes) => {
        if (!isOpen && this.#turn === turn) this.#opened += 1;
        isOpen = true;
        this.bytes += bytes;
      },
      note: (text) => {
        if (text.includes("connection lost")) this.lost += 1;
        if (text === "session resumed") this.resumed += 1;
      },
    };
  }
}

/** What a session asks of its turn, and reports to it. */
export interface SessionLife {
  isOver(): boolean;
  received(bytes: number): void;
  note(text: string): void;
}

/**
 * A shell of a resumable client, into which lines are typed all the time. Resolves with a
 * description of the fault; "" if there is none.
 */
export async function shellSession(target: Target, life: SessionLife): Promise<string> {
  const keyboard = new PassThrough();
  let shown = "";
  const stdout = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      shown += chunk.toString();
      life.received(chunk.byteLength);
      done();
    },
  });
  const executor = new WebSocketExecutor(target, execPath(POD, ["sh"]), { resume: { note: life.note } });
  const ended = executor.stream({ stdin: keyboard, stdout });
  let isEnded = false;
  const over = ended.finally(() => {
    isEnded = true;
  });
  over.catch(() => {});
  let expected = "";
  while (!life.isOver() && !isEnded) {
    const line = randomBytes(LINE_BYTES).toString("hex");
    keyboard.write(`echo ${line}\n`);
    expected += `${line}\n`;
    await Promise.race([pause(PAUSE_MS), over]);
  }
  keyboard.end(`exit ${EXIT_CODE}\n`);
  const { exitCode } = await ended;
  if (exitCode !== EXIT_CODE) return `the shell ended with ${exitCode}`;
  return shown === expected ? "" : `${shown.length} characters instead of ${expected.length}, or others`;
}

/** A port-forward of a resumable client, over which one connection after the other is made. */
export async function forwardSession(
  target: Target,
  life: SessionLife,
  service: TwoWayService,
  port: number,
): Promise<string> {
  const dialer = new TunnelDialer(target, FORWARD_PATH, { resume: { note: life.note } });
  const connection = await dialer.dial();
  try {
    for (let index = 0; !life.isOver(); index++) {
      const kind = CONVERSATIONS[index % CONVERSATIONS.length] as Conversation;
      const fault = await converse(connection.openStream(port), kind, CONVERSATION_BYTES, service);
      if (fault !== "") return fault;
      life.received(CONVERSATION_BYTES);
      await pause(PAUSE_MS);
    }
    return "";
  } finally {
    connection.close();
  }
}

/** How and when (by `Date.now()`) a kubectl ended. */
export interface KubectlEnd {
  readonly atMs: number;
  readonly exitCode: number | null;
  readonly stderr: string;
  /** True if its output is what was typed, as far as it arrived. */
  readonly isWhole: boolean;
  readonly bytes: number;
}

/**
 * Runs `kubectl exec -i web -- cat`, without resumption; a line is typed into it all the time. Its
 * input ends when `isOver`.
 */
export async function kubectlSession(
  kubectl: KubectlRunner,
  isOver: () => boolean,
  onOpen: () => void,
): Promise<KubectlEnd> {
  const child = kubectl.start(["exec", "-i", "web", "--", "cat"]);
  child.stdin.on("error", () => {});
  let [shown, stderr, typed] = ["", "", ""];
  child.stdout.once("data", onOpen).on("data", (chunk: Buffer) => {
    shown += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const closed = once(child, "close");
  while (child.exitCode === null && !isOver()) {
    const line = `${randomBytes(LINE_BYTES).toString("hex")}\n`;
    typed += line;
    child.stdin.write(line);
    await Promise.race([pause(PAUSE_MS), closed]);
  }
  child.stdin.end();
  await closed;
  const isWhole = isOver() && child.exitCode === 0 ? shown === typed : typed.startsWith(shown);
  return { atMs: Date.now(), exitCode: child.exitCode, stderr, isWhole, bytes: shown.length };
}
