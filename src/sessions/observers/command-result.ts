import { endOf, type SessionEnd, statusOf } from "@sluice/client/internal/sessions/session-end";
import {
  encodeStatus,
  exitCodeStatus,
  internalErrorStatus,
  outcomeOf,
  type RemoteCommandVersion,
  specOf,
  successStatus,
} from "@sluice/protocols/remotecommand";

const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

/**
 * A node's status of a command: a few hundred bytes and the command line. Past it the session
 * counts as `upstream-failed`.
 */
const MAX_STATUS_BYTES = 64 * 1024;

export interface Conclusion {
  /** Status JSON for the client's error channel. */
  readonly status: Uint8Array;
  readonly end: SessionEnd;
}

/**
 * Turns the upstream's error stream into the Status that v4 and v5 clients expect. A v4 Status passes
 * byte for byte, or is rewritten as Kubernetes' translator does, which wraps failures once more.
 */
export class CommandResult {
  readonly #version: RemoteCommandVersion;
  readonly #isRewritten: boolean;
  readonly #parts: Uint8Array[] = [];
  #byteLength = 0;
  #isOversized = false;
  #isOrderly = false;
  readonly #object = new JsonObjectEnd();
  #isWhole = false;

  constructor(version: RemoteCommandVersion, isRewritten = false) {
    this.#version = version;
    this.#isRewritten = isRewritten;
  }

  /**
   * Copies the part, so that it does not keep its chunk in memory while the last output is pending.
   * Ignores bytes after the first complete JSON object, wherever reads split it.
   */
  receive(part: Uint8Array): void {
    if (this.#isWhole) return;
    const end = this.#isText ? undefined : this.#object.endIn(part);
    const own = end === undefined ? part : part.subarray(0, end);
    if (this.#byteLength + own.byteLength > MAX_STATUS_BYTES) {
      this.#isOversized = true;
      return;
    }
    this.#isWhole = end !== undefined;
    this.#parts.push(new Uint8Array(own));
    this.#byteLength += own.byteLength;
  }

  /** True once a complete Status has arrived. Always false for text versions, which do not mark their end. */
  get isComplete(): boolean {
    if (!this.#isWhole) return false;
    const outcome = outcomeOf(this.#version, this.#bytes());
    return outcome.type === "failure" ? outcome.status !== undefined : outcome.type !== "missing";
  }

  /** `isOrderly`: the upstream ended the error stream itself, by FIN or RST; the connection did not break. */
  end(isOrderly: boolean): void {
    this.#isOrderly = isOrderly;
  }

  /** `unsaid`: how the upstream ended, used if it sent no status. */
  conclude(unsaid: string = "the node ended the session without a status"): Conclusion {
    if (this.#isOversized)
      return failedBy(endOf("upstream-failed", "the node sent a status that is too large"));
    const bytes = this.#bytes();
    // Up to v3 an empty error stream means success. Only its orderly end distinguishes success from a node
    // that died.
    if (this.#isText && bytes.byteLength === 0 && this.#isOrderly)
      return completed(encodeStatus(successStatus()));
    const outcome = outcomeOf(this.#version, bytes);
    switch (outcome.type) {
      case "success":
        if (!this.#isText) return completed(bytes);
        return failedBy(endOf("upstream-lost", unsaid));
      case "exit":
        return completed(
          this.#isText || this.#isRewritten
            ? encodeStatus(exitCodeStatus(outcome.code, `command terminated with exit code ${outcome.code}`))
            : bytes,
        );
      case "failure": {
        const isKept = !this.#isText && !this.#isRewritten && outcome.status !== undefined;
        // Text that is not a Status is wrapped in one, since clients show nothing else well.
        const status = isKept ? bytes : encodeStatus(internalErrorStatus(outcome.message));
        return {
          status,
          end: {
            ...endOf("upstream-failed", "the node reported a failure"),
            code: outcome.status?.code ?? 500,
          },
        };
      }
      default:
        return failedBy(endOf("upstream-lost", unsaid));
    }
  }

  get #isText(): boolean {
    return !specOf(this.#version).hasStatusJson;
  }

  #bytes(): Uint8Array {
    if (this.#parts.length === 1) return this.#parts[0] as Uint8Array;
    const all = new Uint8Array(this.#byteLength);
    let offset = 0;
    for (const part of this.#parts) {
      all.set(part, offset);
      offset += part.byteLength;
    }
    return all;
  }
}

function completed(status: Uint8Array): Conclusion {
  return { status, end: endOf("completed", "the command ended") };
}

/** The conclusion of a session that the gateway ended, or that failed on one side before a status came. */
export function failedBy(end: SessionEnd): Conclusion {
  return { status: encodeStatus(statusOf(end)), end };
}

/**
 * Finds the end of a JSON object in bytes that arrive in parts, reading each byte once. Does not
 * validate the JSON.
 */
export class JsonObjectEnd {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** The bytes are not an object. */
  isOther = false;

  /**
   * The index after the object's last brace; undefined if this part does not contain it, or the bytes
   * are not an object.
   */
  endIn(part: Uint8Array): number | undefined {
    for (let at = 0; at < part.length && !this.isOther; at++) {
      if (this.#endsWith(part[at] as number)) return at + 1;
    }
    return undefined;
  }

  #endsWith(byte: number): boolean {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === BACKSLASH) this.#isEscaped = true;
      else if (byte === QUOTE) this.#isInString = false;
      return false;
    }
    if (byte === OPENING_BRACE) this.#depth += 1;
    else if (this.#depth === 0) this.isOther = !SPACES.has(byte);
    else if (byte === QUOTE) this.#isInString = true;
    else if (byte === CLOSING_BRACE) {
      this.#depth -= 1;
      return this.#depth === 0;
    }
    return false;
  }
}
