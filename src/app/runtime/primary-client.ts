import type { Server, Socket } from "node:net";
import { serviceUnavailable, tooManyRequests } from "@sluice/client/internal/api/status";
import type { ProbeUpdate } from "../../probes/probe-update.ts";
import type { SessionWatcher } from "../../sessions/sessions.ts";
import type { ReplicaSessions } from "../session-directory.ts";
import {
  type BoundAddress,
  endWithin,
  factsWithin,
  type KeptKind,
  type LastGoodFiles,
  lastGoodFiles,
  outputWithin,
  type PrimaryCalls,
  typedWithin,
  type WorkerCalls,
} from "./calls.ts";
import { type Handlers, Link, type MessagePort } from "./link.ts";

/** Changes within this time go into one report. */
const REPORT_MS = 20;
const KEEP_ALIVE_DELAY_MS = 30_000;
const RETRY_AFTER_SECONDS = 10;

/** A worker's client of its primary, which provides connections, session places and the audit log. */
export class PrimaryClient {
  readonly #link: Link<WorkerCalls, PrimaryCalls>;
  readonly #servers = new Map<string, Server>();
  #closed: number[] = [];
  #sessions = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `handlers` answer all calls except `connection`. */
  constructor(port: MessagePort, handlers: Omit<Handlers<WorkerCalls>, "connection">) {
    this.#link = new Link<WorkerCalls, PrimaryCalls>(port, {
      ...handlers,
      connection: ({ name, id }, socket) => this.#received(name, id, socket),
    });
  }

  /**
   * Serves the connections that the primary accepts at this address. Rejects if the primary cannot
   * listen there.
   */
  async listen(server: Server, name: string, where: BoundAddress): Promise<BoundAddress> {
    this.#servers.set(name, server);
    return this.#link.request("listen", { name, ...where });
  }

  /** Throws StatusError 429 or 503, as the quotas of a single process do. */
  async takePlace(user: string, namespace: string): Promise<() => void> {
    const answer = await this.#link.request("takePlace", { user, namespace });
    if ("refusal" in answer) {
      throw answer.code === 429
        ? tooManyRequests(answer.refusal, RETRY_AFTER_SECONDS)
        : serviceUnavailable(answer.refusal);
    }
    let isHeld = true;
    this.#sessions += 1;
    this.#reportSoon();
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#sessions -= 1;
      this.#link.notify("giveBack", answer.place);
      this.#reportSoon();
    };
  }

  /** Tells the primary which sessions run here, so that it can log their end if this process dies. */
  readonly sessionWatcher: SessionWatcher = {
    began: (info) => this.#link.notify("sessionBegan", info),
    over: (id) => this.#link.notify("sessionOver", id),
  };

  /** Resolves when the primary has stored the lines; rejects if it could not. */
  writeAudit(lines: readonly string[]): Promise<void> {
    return this.#link.request("audit", lines);
  }

  /**
   * Sends valid files to the primary, which keeps them for workers that start while the files are
   * invalid.
   */
  lastGood(kind: KeptKind): LastGoodFiles {
    return lastGoodFiles({
      wants: (digest) => this.#link.request("wantsFiles", { kind, digest }),
      keep: (files) => this.#link.notify("keepFiles", { kind, files }),
      recall: () => this.#link.request("recallFiles", kind),
    });
  }

  /** The sessions of all workers. */
  readonly replicaSessions: ReplicaSessions = {
    list: () => this.#link.request("replicaSessions", undefined),
    facts: (id) => factsWithin(2, this.#link.request("sessionFacts", id)),
    output: (read) => outputWithin(2, this.#link.request("sessionOutput", read)),
    type: (request) => typedWithin(2, this.#link.request("typeInSession", request)),
    end: (request) => endWithin(2, this.#link.request("endSession", request)),
  };

  /** Sends this worker's probe results to the other workers. */
  shareFindings(findings: readonly ProbeUpdate[]): void {
    this.#link.notify("found", findings);
  }

  #received(name: string, id: number, socket: Socket | undefined): void {
    const server = this.#servers.get(name);
    if (socket === undefined || server === undefined) {
      // The connection closed on its way here.
      socket?.destroy();
      this.#over(id);
      return;
    }
    this.#link.notify("received", id);
    // As the server itself would set them; node:net sends only the descriptor, without its options.
    socket.allowHalfOpen = true;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS);
    socket.once("close", () => this.#over(id));
    server.emit("connection", socket);
  }

  #over(id: number): void {
    this.#closed.push(id);
    this.#reportSoon();
  }

  #reportSoon(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const closed = this.#closed;
      this.#closed = [];
      this.#link.notify("report", { closed, sessions: this.#sessions });
    }, REPORT_MS).unref();
  }
}
