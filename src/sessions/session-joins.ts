import { type CommandStatus, decodeStatus, successStatus } from "@sluice/protocols/remotecommand";
import type { SessionObserver } from "./observers/session-observer.ts";
import type { InputResult, SessionReport } from "./session.ts";
import type { OutputAnswer, OutputPage } from "./session-outputs.ts";
import { findSession, type Sessions } from "./sessions.ts";

/** Bytes of a joiner's input that are typed at once. Past it the rest is typed afterwards. */
export const MAX_INPUT_BATCH: number = 8 * 1024;
/** A request to type into a session by its id. Past it: 400. */
export const MAX_JOIN_REQUEST_BYTES: number = 32 * 1024;
/** How long a joiner may send no request. Past it the joiner has left. */
const MAX_JOINER_SILENCE_MS = 5_000;
/** How often a joiner that types nothing sends a request, to show that it is there. */
export const JOINER_BEAT_MS = 2_000;
/**
 * Bytes of a node's Status that joiners get. Past it they learn how the session ended without the
 * Status.
 */
export const MAX_JOINED_STATUS_BYTES: number = 64 * 1024;

/** The cause in the Status of a join that ended before its session. */
export const JOIN_ENDED = "sluice.dev/JoinEnded";

/** A session that one joiner sees and types into, whichever process runs it. */
export interface Joinable {
  readonly name: string;
  readonly hasTerminal: boolean;
  /** The join ends if the session's process does not answer for this long. */
  readonly unansweredMs: number;
  readonly first: OutputPage;
  /** Reads the output that follows `after`, for this joiner. */
  read(after: number): Promise<OutputAnswer>;
  /**
   * Types these bytes, at most MAX_INPUT_BATCH. Without bytes it shows that the joiner is there.
   */
  type(bytes: Uint8Array, isLeaving?: boolean): Promise<JoinAnswer>;
}

/** A joiner's input for a running session, whichever process runs it. */
export interface JoinRequest {
  readonly id: string;
  /** Identifies the join. */
  readonly joiner: string;
  readonly user: string;
  /** In base64; "" only shows that the joiner is there. */
  readonly data: string;
  /** The last request of this join. */
  readonly isLeaving?: boolean | undefined;
}

/**
 * `over`: how the session ended, as joiners learn it. `unreachable`: its process does not answer.
 */
export type JoinAnswer = InputResult | "unknown" | "unreachable" | { readonly over: CommandStatus };

/**
 * The joiners of this process's sessions. They read output from `SessionOutputs`, as viewers do.
 */
export class SessionJoins {
  readonly #registries: () => readonly Pick<Sessions, "find">[];
  readonly #joined = new Map<string, JoinedTo>();
  #timer: NodeJS.Timeout | undefined;

  constructor(registries: () => readonly Pick<Sessions, "find">[]) {
    this.#registries = registries;
  }

  get joiners(): number {
    let joiners = 0;
    for (const { present } of this.#joined.values()) joiners += present.size;
    return joiners;
  }

  /** The users that have joined this session, each once. */
  usersOf(id: string): readonly string[] {
    const present = this.#joined.get(id)?.present.values() ?? [];
    return [...new Set(Array.from(present, ({ user }) => user))].sort();
  }

  type({ id, joiner, user, data, isLeaving = false }: JoinRequest): JoinAnswer {
    const known = this.#joined.get(id);
    if (known?.over !== undefined) {
      known.present.delete(joiner);
      return { over: known.over };
    }
    const session = findSession(this.#registries(), id);
    if (session === undefined || session.isOver) return "unknown";
    const joined = known ?? this.#observe(id, (observer) => session.observe(observer));
    const isNew = !joined.present.has(joiner);
    if (isLeaving) {
      if (joined.present.delete(joiner)) session.joined(user, false);
      return "taken";
    }
    const bytes = Buffer.from(data, "base64");
    const result = session.input(bytes, user);
    if (isNew && result === "no-input") return result;
    joined.present.set(joiner, { user, askedMs: performance.now() });
    if (isNew) session.joined(user, true);
    return result;
  }

  #observe(id: string, observe: (observer: SessionObserver) => () => void): JoinedTo {
    const joined = new JoinedTo();
    joined.stop = observe(joined);
    this.#joined.set(id, joined);
    this.#timer ??= setInterval(() => this.#sweep(), MAX_JOINER_SILENCE_MS / 5).unref();
    return joined;
  }

  #sweep(): void {
    const oldestMs = performance.now() - MAX_JOINER_SILENCE_MS;
    for (const [id, joined] of this.#joined) {
      const session = findSession(this.#registries(), id);
      for (const [joiner, { user, askedMs }] of joined.present) {
        if (askedMs >= oldestMs) continue;
        joined.present.delete(joiner);
        session?.joined(user, false);
      }
      if (joined.present.size > 0) continue;
      joined.stop();
      this.#joined.delete(id);
    }
    if (this.#joined.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** One session's joiners, and how the session ended. */
class JoinedTo implements SessionObserver {
  readonly isRequired = false;
  readonly present = new Map<string, { readonly user: string; readonly askedMs: number }>();
  over: CommandStatus | undefined;
  stop: () => void = () => {};
  #status: Buffer[] = [];
  #statusBytes = 0;

  onStatus(part: Uint8Array): void {
    this.#statusBytes += part.byteLength;
    if (this.#statusBytes <= MAX_JOINED_STATUS_BYTES) this.#status.push(Buffer.from(part));
  }

  onEnd(report: SessionReport): void {
    const isWhole = this.#statusBytes <= MAX_JOINED_STATUS_BYTES;
    this.over = (isWhole ? decodeStatus(Buffer.concat(this.#status)) : undefined) ?? statusOf(report);
  }
}

function statusOf({ cause, code, message }: SessionReport): CommandStatus {
  if (cause === "completed") return successStatus();
  const causes = [{ reason: "sluice.dev/SessionEnded", message: cause }];
  return { metadata: {}, status: "Failure", message, reason: "Gone", code, details: { causes } };
}

/** Parses another replica's request. Throws Error if it is malformed. */
export function readJoinRequest(id: string, text: string): JoinRequest {
  const { joiner, user, data, isLeaving }: Record<string, unknown> = { ...JSON.parse(text) };
  if (typeof joiner !== "string" || typeof user !== "string" || typeof data !== "string")
    throw new TypeError("the request is not that of a joiner");
  return { id, joiner, user, data, isLeaving: isLeaving === true };
}

const ANSWERS = ["taken", "later", "no-input", "unknown", "unreachable"] as const;

/** Parses another process's answer. Throws TypeError if it is malformed. */
export function readJoinAnswer(value: unknown): JoinAnswer {
  const answer = ANSWERS.find((each) => each === value);
  if (answer !== undefined) return answer;
  const { over } = (value ?? {}) as { readonly over?: unknown };
  const status = over === undefined ? undefined : decodeStatus(Buffer.from(JSON.stringify(over)));
  if (status === undefined) throw new TypeError("the answer is not one to a joiner");
  return { over: status };
}
