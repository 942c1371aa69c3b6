import type { Server, Socket } from "node:net";
import type { AdminSession } from "../../admin/admin-server.ts";
import { serviceUnavailable, tooManyRequests } from "../../api/status.ts";
import type { ProbeUpdate } from "../../probes/probe-update.ts";
import type { SessionWatcher } from "../../sessions/sessions.ts";
import type { BoundAddress, PrimaryCalls, WorkerCalls } from "./calls.ts";
import { type KeptKind, type LastGoodFiles, lastGoodFiles } from "./kept-files.ts";
import { type Handlers, Link, type MessagePort } from "./link.ts";

/** What changed within this time is told together. */
const REPORT_MS = 20;
const KEEP_ALIVE_DELAY_MS = 30_000;
const RETRY_AFTER_SECONDS = 10;

/** What a worker has from its primary: connections, places for sessions, and somewhere to write the audit log. */
export class PrimaryClient {
  readonly #link: Link<WorkerCalls, PrimaryCalls>;
  readonly #servers = new Map<string, Server>();
  #closed: number[] = [];
  #sessions = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `handlers` answer what is not about connections. */
  constructor(port: MessagePort, handlers: Omit<Handlers<WorkerCalls>, "connection">) {
    this.#link = new Link<WorkerCalls, PrimaryCalls>(port, {
      ...handlers,
      connection: ({ name, id }, socket) => this.#received(name, id, socket),
    });
  }

  /** The server gets the connections that the primary accepts there. Rejects when the primary cannot listen. */
  async listen(server: Server, name: string, where: BoundAddress): Promise<BoundAddress> {
    this.#servers.set(name, server);
    return this.#link.request("listen", { name, ...where });
  }

  /** Throws StatusError 429 or 503, as a count of this process would. */
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

  /** The primary reports those that this process takes with it. */
  readonly sessionWatcher: SessionWatcher = {
    began: (info) => this.#link.notify("sessionBegan", info),
    over: (id) => this.#link.notify("sessionOver", id),
  };

  /** Resolves when the primary has stored them, rejects when it could not. */
  writeAudit(lines: readonly string[]): Promise<void> {
    return this.#link.request("audit", lines);
  }

  /** The primary keeps files that were right for workers that start while they are wrong. */
  lastGood(kind: KeptKind): LastGoodFiles {
    return lastGoodFiles({
      wants: (digest) => this.#link.request("wantsFiles", { kind, digest }),
      keep: (files) => this.#link.notify("keepFiles", { kind, files }),
      recall: () => this.#link.request("recallFiles", kind),
    });
  }

  /** The sessions of all workers. */
  listSessions(): Promise<readonly AdminSession[]> {
    return this.#link.request("replicaSessions", undefined);
  }

  /** What this worker's probes have found, for the others. */
  shareFindings(findings: readonly ProbeUpdate[]): void {
    this.#link.notify("found", findings);
  }

  #received(name: string, id: number, socket: Socket | undefined): void {
    const server = this.#servers.get(name);
    if (socket === undefined || server === undefined) {
      // It was closed on its way.
      socket?.destroy();
      this.#over(id);
      return;
    }
    this.#link.notify("received", id);
    // As the server would have accepted it; node:net's messages carry the connection alone.
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
