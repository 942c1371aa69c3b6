// src/recording: sessions recorded to files: a thread that writes, deletes and uploads them; their
// format, replay and verification

import { randomUUID } from "node:crypto";
import { statfs } from "node:fs/promises";
import { matchesSession } from "../access/policy/evaluate-policy.ts";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";
import type { Recording, RecordingRule } from "../config/sections/recording.ts";
import type { Component } from "../lifecycle/component.ts";
import type { Logger } from "../observability/logger.ts";
import type { RecordingMetrics } from "../observability/recording-metrics.ts";
import type { BeforeDial, RecordingRules } from "../sessions/context.ts";
import { archiveUseOf } from "./archive-command.ts";
import { CommandRecorder } from "./command-recorder.ts";
import { ForwardRecorder } from "./forward-recorder.ts";
import { recordingFileOf } from "./recorded-facts.ts";
import { SessionRecording } from "./session-recording.ts";
import { readSigningKey } from "./signing-key.ts";
import type { Retention } from "./storage/apply-retention.ts";
import type { UploadRound } from "./storage/s3/uploader.ts";
import { Recorder, type RecorderEvents } from "./thread/recorder.ts";
import type { RecordingQueue } from "./thread/recording-queue.ts";

export interface RecordingParts {
  readonly cluster: Pick<Cluster, "getPod">;
  readonly metrics: {
    addRecording(running: () => { readonly size: number; readonly queuedBytes: number }): RecordingMetrics;
  };
  readonly logger: Logger;
  /** The compiled `recorder-thread.ts`. */
  readonly program?: URL;
}

export interface BuiltRecording extends Component {
  readonly beforeDial: BeforeDial;
  readonly rules: RecordingRules;
}

/** Records sessions by the rules in force. Throws ConfigurationError for an unusable key. */
export async function buildRecording(
  settings: Recording,
  { cluster, metrics: allMetrics, logger, program }: RecordingParts,
): Promise<BuiltRecording> {
  const { folder, maxQueuedBytes, maxQueuedBytesPerSession, minFreeBytes, signingKeyFile } = settings;
  let { rules } = settings;
  const metrics = allMetrics.addRecording(() => recorder);
  const uploads = new UploadReports(settings.s3, metrics, logger);
  const recorder: Recorder = new Recorder({
    folder,
    writer: randomUUID(),
    signingKey: await readSigningKey(folder, signingKeyFile),
    retention: retentionOf(settings),
    store: settings.s3,
    maxQueuedBytes,
    maxQueuedBytesPerSession,
    program,
    ...reporting(metrics, uploads, logger),
  });
  recorder.start();

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
        const queue = await within(settings.maxHoldMs, recorder.open(recordingFileOf(info)));
        const onUnfinished = (problem: string): void =>
          logger.error({ session: { id: info.id }, problem }, "a recording could not be finished");
        const options = { rule, bounds: settings, metrics, annotate, recordAudit, onUnfinished };
        const recording = new SessionRecording(queue, options);
        const { maxOutputBytes } = settings;
        return [
          info.subresource === "portforward"
            ? new ForwardRecorder(recording, maxOutputBytes)
            : new CommandRecorder(recording, maxOutputBytes, takenOf(rule, session.request)),
        ];
      } catch (error) {
        metrics.notBegun();
        const problem = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
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
    reload: async ({ recording }: GatewayConfiguration) => {
      if (recording === undefined) return;
      // A key that cannot be read leaves everything as it was.
      recorder.useKey(await readSigningKey(folder, signingKeyFile));
      recorder.keep(retentionOf(recording));
      rules = recording.rules;
    },
    stop: () => recorder.stop(),
  };
}

/** What the recorder says that belongs to no session, as metrics and log lines. */
function reporting(metrics: RecordingMetrics, uploads: UploadReports, logger: Logger): RecorderEvents {
  return {
    onLeft: (outcome, file) => {
      if (outcome === "empty") return;
      metrics.left(outcome);
      if (outcome === "finished") logger.info({ file }, "a recording that was left unfinished is finished");
      else logger.error({ file }, "a recording that was left unfinished was changed, and is set aside");
    },
    onLeftProblem: (problem) =>
      logger.warn({ problem }, "what a recorder left in the folder is not all finished or removed"),
    onDeleted: (deleted, problem) => {
      metrics.deleted(deleted);
      if (problem !== undefined) logger.warn({ problem }, "old recordings could not be deleted");
    },
    onUploads: (round, isActive) => uploads.report(round, isActive),
    onProblem: (error) => logger.error({ error }, "the thread that writes recordings has ended"),
  };
}

/** What the recorder's thread says about its uploads. */
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
    // Of several processes the one that uploads says what waits.
    this.#metrics.uploads(isActive ? round : NOTHING_WAITS);
    if (!isActive) return;
    const { problem, uploaded, waiting: waitingRecordings } = round;
    if (problem !== undefined) {
      this.#isFailing = true;
      this.#logger.warn({ problem, waitingRecordings }, "recordings are not uploaded");
    } else if (this.#isFailing && uploaded > 0) {
      this.#isFailing = false;
      this.#logger.info({ waitingRecordings }, "recordings are uploaded again");
    }
  }

  /** Throws an Error if no further recording may begin. */
  requireRoom(): void {
    if (this.#waitingBytes > this.#maxWaitingBytes)
      throw new Error("too many recordings wait for their upload");
  }
}

const NOTHING_WAITS = { uploaded: 0, failed: 0, waitingBytes: 0, oldestMs: 0 };

function retentionOf({ maxAgeMs, maxTotalBytes, s3 }: Recording): Retention {
  return { maxAgeMs, maxTotalBytes, ...(s3 && { keepUploadedMs: s3.keepInFolderMs }) };
}

/** The queue, if it is open in time. */
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

/** Input is wanted for a terminal's echo, and for archives that are unpacked. */
function takenOf(
  { record }: RecordingRule,
  { command, streams: { tty } }: Parameters<BeforeDial>[0]["request"],
): { readonly input: boolean; readonly archive: boolean } {
  const archive = tty ? undefined : archiveUseOf(command);
  return { input: (record === "all" && tty) || archive === "unpack", archive: archive === "pack" };
}

/** The session's facts that rules match. */
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
