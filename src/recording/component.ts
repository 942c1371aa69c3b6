// src/recording: sessions recorded to files: a thread that writes, deletes and uploads them; their
// format, replay and verification

import { randomUUID } from "node:crypto";
import { statfs } from "node:fs/promises";
import { matchesSession } from "../access/policy/evaluate-policy.ts";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";
import type { Recording, RecordingRule } from "../config/sections/recording.ts";
import type { Component, Health } from "../lifecycle/component.ts";
import type { Logger } from "../observability/logger.ts";
import type { RecordingMetrics } from "../observability/recording-metrics.ts";
import type { BeforeDial, RecordingRules } from "../sessions/context.ts";
import { CommandRecorder } from "./command-recorder.ts";
import { ForwardRecorder } from "./forward-recorder.ts";
import { archiveUseOf, recordingFileOf } from "./recorded-facts.ts";
import { SessionRecording } from "./session-recording.ts";
import { readSigningKey } from "./signing-key.ts";
import type { Retention } from "./storage/apply-retention.ts";
import type { UploadRound } from "./storage/s3/uploader.ts";
import { Recorder, type RecorderEvents } from "./thread/recorder.ts";
import type { RecordingQueue } from "./thread/recording-queue.ts";

interface RecordingParts {
  readonly cluster: Pick<Cluster, "getPod">;
  readonly metrics: {
    addRecording(running: () => { readonly size: number; readonly queuedBytes: number }): RecordingMetrics;
  };
  readonly logger: Logger;
  /** The authorities of the store's certificate, PEM. Absent: those of Node.js. */
  readonly storeCa?: string | undefined;
  /** The compiled `recorder-thread.ts`. */
  readonly program?: URL;
}

export interface BuiltRecording extends Component {
  readonly beforeDial: BeforeDial;
  readonly rules: RecordingRules;
  /** The authorities of the store's certificate, as they are now. */
  readonly storeTrust: { readonly ca: string | undefined };
  /** Replaces them. */
  trustStore(ca: string | undefined): void;
}

/** Records sessions by the current rules. Throws ConfigurationError for an unusable key. */
export async function buildRecording(
  settings: Recording,
  { cluster, metrics: allMetrics, logger, storeCa, program }: RecordingParts,
): Promise<BuiltRecording> {
  const { folder, maxQueuedBytes, maxQueuedBytesPerSession, minFreeBytes, signingKeyFile } = settings;
  let { rules } = settings;
  const metrics = allMetrics.addRecording(() => recorder);
  const uploads = new UploadReports(settings.s3, metrics, logger);
  const storeTrust = { ca: storeCa };
  const recorder: Recorder = new Recorder({
    folder,
    writer: randomUUID(),
    signingKey: await readSigningKey(folder, signingKeyFile),
    retention: retentionOf(settings),
    store: settings.s3,
    storeCa,
    maxQueuedBytes,
    maxQueuedBytesPerSession,
    program,
    ...reporting(metrics, uploads, logger),
  });
  recorder.start();
  const { noteOutcome, health } = lastFailure();

  const ruleFor = (wanted: Parameters<RecordingRules["nameFor"]>[0]): RecordingRule | undefined => {
    const rule = rules.find(({ match }) => matchesSession(match, wanted));
    return rule?.record === "none" ? undefined : rule;
  };
  return {
    beforeDial: async (session) => {
      const rule = ruleFor(matchedFacts(session, cluster));
      if (rule === undefined) return [];
      const { annotate, recordAudit, info } = session;
      try {
        await requireSpace(folder, minFreeBytes);
        uploads.requireRoom();
        const opening = recorder.open(recordingFileOf(info.id, info.startedAt));
        const queue = await within(settings.maxHoldMs, opening);
        const recording = new SessionRecording(queue, {
          ...{ rule, bounds: settings, metrics, annotate, recordAudit },
          ...outcomesOf(info.id, noteOutcome, logger),
        });
        const { maxOutputBytes } = settings;
        return [
          info.subresource === "portforward"
            ? new ForwardRecorder(recording, maxOutputBytes)
            : new CommandRecorder(recording, maxOutputBytes, takenOf(rule, session.request)),
        ];
      } catch (error) {
        metrics.notBegun();
        const problem = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
        noteOutcome(problem);
        logger.warn({ recordingRule: rule.name, problem }, "a recording could not begin");
        annotate("sluice.dev/recording-failed", problem);
        if (rule.recordOnFailure === "continue") return [];
        throw WIRE_ERRORS["recording-unavailable"].streaming({ rule: rule.name });
      }
    },
    rules: {
      get recordAny() {
        return rules.some(({ record }) => record !== "none");
      },
      nameFor: (wanted) => ruleFor(wanted)?.name,
    },
    health,
    storeTrust,
    trustStore: (ca) => {
      storeTrust.ca = ca;
      recorder.trustStore(ca);
    },
    reload: async ({ recording }: GatewayConfiguration) => {
      if (recording === undefined) return;
      // If the key cannot be read, nothing changes.
      recorder.useKey(await readSigningKey(folder, signingKeyFile));
      recorder.keep(retentionOf(recording));
      rules = recording.rules;
    },
    stop: () => recorder.stop(),
  };
}

/** Remembers why the last recording failed, for /readyz?verbose. */
function lastFailure() {
  let failure: { readonly problem: string; readonly ms: number } | undefined;
  return {
    /** Undefined: a recording was written whole. */
    noteOutcome: (problem: string | undefined): void => {
      failure = problem === undefined ? undefined : { problem, ms: performance.now() };
    },
    health: (): Health => {
      if (failure === undefined) return undefined;
      const seconds = Math.round((performance.now() - failure.ms) / 1_000);
      return { note: `the last recording failed ${seconds} s ago: ${failure.problem}` };
    },
  };
}

/** Logs what happens to a session's recording, and notes it for /readyz?verbose. */
function outcomesOf(id: string, noteOutcome: (problem: string | undefined) => void, logger: Logger) {
  const session = { id };
  return {
    onWhole: (): void => noteOutcome(undefined),
    onUnwritten: (problem: string): void => {
      noteOutcome(problem);
      logger.warn({ session, problem }, "output of a session cannot be recorded");
    },
    onUnfinished: (problem: string): void => {
      noteOutcome(problem);
      logger.error({ session, problem }, "a recording could not be finished");
    },
  };
}

/** Turns the recorder's events that belong to no session into metrics and log lines. */
function reporting(metrics: RecordingMetrics, uploads: UploadReports, logger: Logger): RecorderEvents {
  return {
    onLeft: (outcome, file) => {
      if (outcome === "empty") return;
      metrics.left(outcome);
      if (outcome === "finished") logger.info({ file }, "finished a recording that its writer left");
      else logger.error({ file }, "set aside a changed recording that its writer left");
    },
    onLeftProblem: (problem) =>
      logger.warn({ problem }, "some files of dead writers could not be finished or removed"),
    onDeleted: (deleted, problem) => {
      metrics.deleted(deleted);
      if (problem !== undefined) logger.warn({ problem }, "old recordings could not be deleted");
    },
    onUploads: (round, isActive) => uploads.report(round, isActive),
    onProblem: (error) => logger.error({ error }, "the thread that writes recordings has ended"),
  };
}

/** Logs and counts what the recorder's thread reports about uploads. */
class UploadReports {
  readonly #maxWaitingBytes: number;
  readonly #metrics: RecordingMetrics;
  readonly #logger: Logger;
  #waitingBytes = 0;
  #isFailing = false;

  constructor(store: Recording["s3"], metrics: RecordingMetrics, logger: Logger) {
    this.#maxWaitingBytes = store?.maxWaitingBytes ?? Number.POSITIVE_INFINITY;
    this.#metrics = metrics;
    this.#logger = logger;
  }

  report(round: UploadRound, isActive: boolean): void {
    this.#waitingBytes = round.waitingBytes;
    // Only the process that uploads reports waiting bytes; the others report 0.
    this.#metrics.uploads(isActive ? round : NOTHING_WAITS);
    if (!isActive) return;
    const { problem, uploaded, waiting: waitingRecordings } = round;
    if (problem !== undefined) {
      this.#isFailing = true;
      this.#logger.warn({ problem, waitingRecordings }, "recordings cannot be uploaded");
    } else if (this.#isFailing && uploaded > 0) {
      this.#isFailing = false;
      this.#logger.info({ waitingRecordings }, "recordings are uploaded again");
    }
  }

  /** Throws an Error if too many recordings wait for their upload. */
  requireRoom(): void {
    if (this.#waitingBytes > this.#maxWaitingBytes)
      throw new Error("too many recordings wait for their upload");
  }
}

const NOTHING_WAITS = { uploaded: 0, failed: 0, waitingBytes: 0, oldestMs: 0 };

function retentionOf({ maxAgeMs, maxTotalBytes, s3 }: Recording): Retention {
  return { maxAgeMs, maxTotalBytes, ...(s3 && { keepUploadedMs: s3.keepInFolderMs }) };
}

/** Resolves with the queue. Rejects with Error if it does not open within `ms`. */
async function within(ms: number, opening: Promise<RecordingQueue>): Promise<RecordingQueue> {
  let timer: NodeJS.Timeout | undefined;
  const isLate = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  const queue = await Promise.race([opening, isLate]).finally(() => clearTimeout(timer));
  if (queue !== undefined) return queue;
  opening.then((late) => late.discard()).catch(() => {});
  throw new Error(`the recording was not opened for ${ms / 1_000} s`);
}

/** Input is needed to find what a terminal echoed, and to read archives that are unpacked. */
function takenOf(
  { record }: RecordingRule,
  { command, streams: { tty } }: Parameters<BeforeDial>[0]["request"],
): { readonly input: boolean; readonly archive: boolean } {
  const archive = tty ? undefined : archiveUseOf(command);
  return { input: (record === "all" && tty) || archive === "unpack", archive: archive === "pack" };
}

/** The session's facts that rules are matched against. */
function matchedFacts(
  { user, request, info }: Parameters<BeforeDial>[0],
  cluster: RecordingParts["cluster"],
): Parameters<RecordingRules["nameFor"]>[0] {
  const { namespace, pod, subresource, command, streams } = request;
  return {
    user: user.name,
    groups: user.groups,
    namespace,
    podLabels: cluster.getPod(namespace, pod)?.metadata.labels ?? {},
    container: info.details?.container,
    subresource,
    command,
    tty: streams.tty,
    stdin: streams.stdin,
  };
}

async function requireSpace(folder: string, minFreeBytes: number): Promise<void> {
  if (minFreeBytes === 0) return;
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize < minFreeBytes) throw new Error("the folder has too little free space");
}
