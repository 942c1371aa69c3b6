import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { ProtocolError } from "@sluice/protocols";
import {
  defaultHttp1Limits,
  ResponseDecoder,
  type ResponseDelivery,
  type ResponseHandler,
  type ResponseHead,
} from "@sluice/protocols/http1";
import { UpstreamError } from "../../net/upstream-error.ts";
import { latin1Of } from "../header-list.ts";
import { responseErrorOf } from "./exchange-error.ts";

/**
 * How long a refusal's body may take to arrive, so that its readers need no timer. Past it, it is cut
 * off.
 */
const REFUSAL_BODY_DEADLINE_MS = 10_000;

interface ResponseBodyOptions {
  readonly deadlineMs?: number | undefined;
  /**
   * Gets the paused socket once the body is complete and the connection is reusable. Absent: the socket
   * is closed.
   */
  readonly release?: ((socket: Socket) => void) | undefined;
}

/**
 * The decoded body of an answer whose head has been read. It owns the upstream socket and closes it at
 * the end or when destroyed, since a connection that refused an upgrade is never reused
 * (CVE-2018-1002105). A body that is truncated, or not complete within `deadlineMs`, fails with
 * UpstreamError "truncated-body" and never ends cleanly.
 */
export class ResponseBody extends Readable {
  readonly #socket: Socket;
  readonly #deadline: NodeJS.Timeout;
  #isReleased = false;

  constructor(
    socket: Socket,
    response: SingleResponse,
    { deadlineMs = REFUSAL_BODY_DEADLINE_MS, release }: ResponseBodyOptions = {},
  ) {
    super({ highWaterMark: 64 * 1024 });
    this.#socket = socket;
    this.#deadline = setTimeout(() => this.destroy(truncated("i/o timeout")), deadlineMs);
    // A reader, if there is one, gets the failure from its reads.
    this.on("error", () => {});
    let isOver = false;

    const finish = (): void => {
      isOver = true;
      clearTimeout(this.#deadline);
      this.push(null);
      if (release === undefined || !response.keepsAlive) {
        socket.destroy();
        return;
      }
      this.#isReleased = true;
      socket.off("data", take).off("end", end).off("close", end);
      socket.pause();
      release(socket);
    };
    const read = (more: () => void): void => {
      if (isOver) return;
      try {
        more();
      } catch (error) {
        this.destroy(error as Error);
        return;
      }
      if (response.isWhole) finish();
    };
    const take = (chunk: Buffer): void => read(() => void response.push(chunk));
    const end = (): void => {
      if (isOver) return;
      if (!socket.errored && response.end()) finish();
      else this.destroy(truncated("unexpected EOF"));
    };
    read(() =>
      response.readBody((part) => {
        if (!this.push(part)) socket.pause();
      }),
    );
    if (!isOver && !this.destroyed) socket.on("data", take).on("end", end).on("close", end);
  }

  override _read(): void {
    if (!this.#isReleased) this.#socket.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    clearTimeout(this.#deadline);
    if (!this.#isReleased) this.#socket.destroy();
    callback(error);
  }
}

function truncated(text: string): UpstreamError {
  return new UpstreamError("truncated-body", text);
}

/** The limit of Kubernetes' tunnel for a response head. */
const DEFAULT_MAX_RESPONSE_HEAD_BYTES = 1024 * 1024;

// Interim responses that may precede the final one (RFC 9110 section 15.2, RFC 8297). Any other 1xx
// counts as the answer, and is invalid.
const SKIPPED_INTERIM_STATUSES: readonly number[] = [100, 102, 103];
const NOTHING = Buffer.alloc(0);

/**
 * A connection's only response, to an upgrade or to CONNECT, with folded lines joined. `push` and
 * `end` throw UpstreamError "malformed-response", "response-head-too-large" or "invalid-status".
 */
export class SingleResponse implements ResponseHandler<Buffer> {
  readonly #decoder: ResponseDecoder<Buffer>;
  readonly #early: Buffer[] = [];
  #onBody: ((part: Buffer) => void) | undefined;
  #failure: unknown;
  #head: ResponseHead | undefined;
  #isWhole = false;
  #keepsAlive = false;
  #hasBytes = false;

  constructor(method: string, maxHeadBytes: number = DEFAULT_MAX_RESPONSE_HEAD_BYTES) {
    const limits = { ...defaultHttp1Limits, maxHeadBytes };
    this.#decoder = new ResponseDecoder<Buffer>(this, { limits, leniency: "folded-lines", textOf: latin1Of });
    this.#decoder.expect(method);
  }

  /** Undefined until the head is complete. */
  get head(): ResponseHead | undefined {
    return this.#head;
  }

  get isWhole(): boolean {
    return this.#isWhole;
  }

  /**
   * True if the response is complete, no bytes follow it, and the connection is reusable (RFC 9112
   * section 9.3).
   */
  get keepsAlive(): boolean {
    return this.#isWhole && this.#keepsAlive;
  }

  get hasBytes(): boolean {
    return this.#hasBytes;
  }

  /** Returns the bytes after the response. */
  push(chunk: Buffer): Buffer {
    this.#hasBytes = true;
    try {
      const rest = chunk.subarray(this.#decoder.push(chunk));
      if (rest.byteLength > 0) this.#keepsAlive = false;
      return rest;
    } catch (error) {
      this.#failure = error instanceof ProtocolError ? responseErrorOf(error) : error;
      // If a body breaks in the same read as its head, report the head first.
      if (this.#head === undefined || this.#onBody !== undefined) throw this.#failure;
      return NOTHING;
    }
  }

  /** The connection has ended. Returns true if the response is complete. */
  end(): boolean {
    return this.#decoder.end();
  }

  /**
   * Passes on the body's parts: those that have arrived, then later ones as they arrive. Throws as
   * `push` does.
   */
  readBody(onBody: (part: Buffer) => void): void {
    this.#onBody = onBody;
    for (const part of this.#early.splice(0)) onBody(part);
    if (this.#failure !== undefined) throw this.#failure;
  }

  onInterim({ status }: ResponseHead): void {
    if (!SKIPPED_INTERIM_STATUSES.includes(status)) throw invalidStatus(status);
  }

  onHead(head: ResponseHead, { keepsAlive }: ResponseDelivery): void {
    this.#head = head;
    // After a 101 the connection no longer speaks HTTP, although its framing is that of an empty body.
    this.#keepsAlive = keepsAlive && head.status !== 101;
  }

  onBody(part: Buffer): void {
    if (this.#onBody === undefined) this.#early.push(part);
    else this.#onBody(part);
  }

  onEnd(): void {
    this.#isWhole = true;
  }
}

export function invalidStatus(status: number): UpstreamError {
  return new UpstreamError("invalid-status", `invalid upgrade response: status code ${status}`);
}
