// One worker of `sluice serve --workers`. Its primary (primary.ts) tells it over the IPC channel what
// to serve.

import type { Server, Socket } from "node:net";
import path from "node:path";
import { setDefaultHighWaterMark } from "node:stream";
import { serviceUnavailable, tooManyRequests } from "@sluice/client/internal/api/status";
import { observeRightFiles, readingInstead } from "@sluice/client/internal/config/named-file-text";
import { parseConfiguration } from "../../config/configuration.ts";
import { type ListenAddress, listenAtPath } from "../../net/listen.ts";
import { createLogger, type Logger } from "../../observability/logger.ts";
import type { ProbeUpdate } from "../../probes/probe-update.ts";
import type { SessionWatcher } from "../../sessions/sessions.ts";
import { type RunningGateway, startGateway } from "../app.ts";
import type { Runtime } from "../runtime.ts";
import type { ReplicaSessions } from "../session-directory.ts";
import { surviveUncaughtExceptions } from "../uncaught-exceptions.ts";
import {
  endWithin,
  factsWithin,
  type KeptKind,
  type LastGoodFiles,
  lastGoodFiles,
  outputWithin,
  type PrimaryCalls,
  typedWithin,
  type WorkerCalls,
  type WorkerStart,
} from "./calls.ts";
import { type Handlers, Link, type MessagePort } from "./link.ts";

/** Changes within this time go into one report. */
const REPORT_MS = 20;
const KEEP_ALIVE_DELAY_MS = 30_000;
const RETRY_AFTER_SECONDS = 10;

/** A worker's client of its primary, which provides connections, session places and the audit log. */
class PrimaryClient {
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
  async listen(server: Server, name: string, where: ListenAddress): Promise<ListenAddress> {
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

  /** Reports running sessions to the primary, which logs their end if this process dies. */
  readonly sessionWatcher: SessionWatcher = {
    began: (info) => this.#link.notify("sessionBegan", info),
    over: (id) => this.#link.notify("sessionOver", id),
  };

  /** Resolves when the primary has stored the lines; rejects if it could not. */
  writeAudit(lines: readonly string[]): Promise<void> {
    return this.#link.request("audit", lines);
  }

  /**
   * Sends valid files to the primary. It keeps them for workers that start while the files are
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
      // The connection closed on its way to this worker.
      socket?.destroy();
      this.#over(id);
      return;
    }
    this.#link.notify("received", id);
    // Sets the options that the server would set; node:net sends only the descriptor.
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

let gateway: RunningGateway | undefined;
let reload: ((text: string) => Promise<void>) | undefined;

const primary = new PrimaryClient(process, {
  start,
  reload: async (text) => await reload?.(text),
  learn: (findings) => gateway?.probes.learn(findings),
  beat: () => undefined,
  probe: ({ isSuccessor }) => gateway?.probes.begin(isSuccessor),
  metrics: async () => (await gateway?.metrics()) ?? [],
  sessions: () => gateway?.sessions.list() ?? [],
  allSessions: async (own) => (await gateway?.sessions.listAll(own)) ?? own,
  sessionFacts: (id) => gateway?.sessions.factsHere(id),
  sessionOutput: async (read) => (await gateway?.sessions.outputHere(read)) ?? "unknown",
  typeInSession: (request) => gateway?.sessions.typeHere(request) ?? "unknown",
  endSession: async (request) => (await gateway?.sessions.endHere(request)) ?? "unknown",
  endElsewhere: async (request) => (await gateway?.sessions.end(request)) ?? "unknown",
  nodes: (name) => gateway?.nodes(name) ?? [],
  probes: () => gateway?.probes.listProbes() ?? [],
  lameDuck: (hasSuccessor) => gateway?.enterLameDuck(hasSuccessor),
  shutDown: end,
});

// The terminal sends Ctrl-C and SIGHUP to all processes; only the primary decides when to end or reload.
process.on("SIGINT", () => {});
process.on("SIGHUP", () => {});
process.on("SIGTERM", () => void end());
// Without its primary a worker gets no new connections: it finishes the ones it has.
process.once("disconnect", () => void end());

async function start({ configurationText, configurationFile, flags, ...rest }: WorkerStart): Promise<void> {
  const configuration = parseConfiguration(configurationText, configurationFile, flags);
  // Sockets from the primary get Node's default buffer size, so this changes the default.
  setDefaultHighWaterMark(false, configuration.limits.socketBufferBytes);
  const runtime: Runtime = {
    readsConfiguration: false,
    listen: (server, name, where) => {
      const isOwn = name === "admin";
      return isOwn ? listenAtPath(server, rest.adminSocket) : primary.listen(server, name, where);
    },
    buildQuotas: async () => ({
      quotas: { take: (user, namespace) => primary.takePlace(user, namespace) },
      stop: () => {},
    }),
    openAuditLog: () => ({ deliver: (lines) => primary.writeAudit(lines), stop: () => {} }),
    announce: (logger, fields, message) => logger.debug(fields, message),
    siblings: { processes: rest.workers, socketFolder: path.dirname(rest.adminSocket) },
    isFirst: rest.isFirst,
    replicaId: rest.replicaId,
    sessionWatcher: primary.sessionWatcher,
    replicaSessions: primary.replicaSessions,
    shareFindings: (findings) => primary.shareFindings(findings),
    lastGoodManifests: primary.lastGood("manifests"),
    ticketKeys: Buffer.from(rest.ticketKeys, "base64"),
  };
  const logger = createLogger(configuration.logging);
  gateway = await startWithLastGood(() => startGateway(configuration, logger, runtime), logger);
  surviveUncaughtExceptions(() => {
    process.exitCode = 1;
    void end();
  });
  reload = async (text) => {
    const wanted = parseConfiguration(text, configurationFile, flags);
    logger.configure(wanted.logging);
    await gateway?.reload(wanted);
  };
}

/**
 * An invalid file fails the gateway's first start. A worker that restarts later uses the last valid
 * version instead.
 */
async function startWithLastGood<T>(startNow: () => Promise<T>, logger: Logger): Promise<T> {
  const lastGood = primary.lastGood("named");
  const started = await startNow().catch(async (error: Error) => {
    const files = await lastGood.recall();
    if (files === undefined) throw error;
    const problems = error.message.split("\n");
    const again = await readingInstead(files, startNow);
    logger.error({ problems }, "files of the configuration are wrong, the last good ones stay in use");
    return again;
  });
  observeRightFiles((files) => lastGood.keep(files));
  return started;
}

let ending: Promise<void> | undefined;

function end(): Promise<void> {
  // A starting worker has no clients yet, so it can be killed. A clean exit would wait for a read
  // that hangs.
  if (gateway === undefined) {
    process.kill(process.pid, "SIGKILL");
    return Promise.resolve();
  }
  ending ??= gateway.shutDown().finally(() => {
    // Runs after the answer to the primary has been sent.
    setImmediate(() => process.disconnect?.());
  });
  return ending;
}
