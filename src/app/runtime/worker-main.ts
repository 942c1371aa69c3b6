// One worker of `sluice serve --workers`. Its primary (primary.ts) tells it over the IPC channel what
// to serve.
import path from "node:path";
import { setDefaultHighWaterMark } from "node:stream";
import { observeRightFiles, readingInstead } from "@sluice/client/internal/config/named-file-text";
import { parseConfiguration } from "../../config/configuration.ts";
import { listenAtPath } from "../../net/listen.ts";
import { createLogger, type Logger } from "../../observability/logger.ts";
import { type RunningGateway, startGateway } from "../app.ts";
import type { Runtime } from "../runtime.ts";
import { surviveUncaughtExceptions } from "../uncaught-exceptions.ts";
import type { WorkerStart } from "./calls.ts";
import { PrimaryClient } from "./primary-client.ts";

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
  // Sockets from the primary come with Node's default.
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
  // A starting worker has no clients yet, so it can be killed. An exit would wait for a read that hangs.
  if (gateway === undefined) {
    process.kill(process.pid, "SIGKILL");
    return Promise.resolve();
  }
  ending ??= gateway.shutDown().finally(() => {
    // After the answer to the primary has been sent.
    setImmediate(() => process.disconnect?.());
  });
  return ending;
}
