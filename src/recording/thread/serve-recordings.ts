import type { MessagePort } from "node:worker_threads";
import type { RecordingStore } from "../../config/sections/recording.ts";
import { applyRetention } from "../storage/apply-retention.ts";
import type { Uploader, UploadRound } from "../storage/s3/uploader.ts";
import { codeOf, type Disk, systemDisk } from "./disk.ts";
import { finishLeftParts } from "./finish-left-parts.ts";
import { RecordingService } from "./recording-service.ts";
import type { FromThread, ThreadInput, ToThread } from "./thread-messages.ts";
import { isFirstWriter, ReserveFile, reserveOf, WriterLease } from "./writer-lease.ts";

/** How often chunks end, files are synced and failed writes are tried again. */
const SYNC_MS = 1_000;

/** How often the thread searches for recordings of dead writers and for those that are too old. */
const SEARCH_MS = 60_000;
/** Pause between two rounds of uploads. */
const UPLOAD_MS = 5_000;

/** Writes recordings for the recorder at the port's other end, until it sends `stop`. */
export function serveRecordings(port: MessagePort, input: ThreadInput, disk: Disk = systemDisk): void {
  // The lease comes first, because reserved space without a lease counts as a dead writer's.
  const lease = new WriterLease(input.folder, input.writer);
  const reserve = new ReserveFile(reserveOf(input.folder, input.writer));
  const answer = (message: FromThread, transfer: readonly ArrayBuffer[] = []): void =>
    port.postMessage(message, [...transfer]);
  const service = new RecordingService(input, answer, reserve, disk);
  const timer = setInterval(() => {
    lease.renew();
    service.tick();
  }, SYNC_MS);
  const lookForLeft = (): void =>
    void finishLeftParts(input.folder, input.writer, service.key, (outcome, file) =>
      answer({ kind: "left", outcome, file }),
    ).catch((error: unknown) => answer({ kind: "left-problem", problem: codeOf(error) }));
  const none = { age: 0, size: 0, uploaded: 0 };
  let { retention } = input;
  let isDeleting = false;
  const deleteOld = async (): Promise<void> => {
    if (isDeleting) return;
    isDeleting = true;
    try {
      // Only one of the processes that share the folder deletes.
      if (!isFirstWriter(input.folder, input.writer)) return;
      const { problem, ...deleted } = await applyRetention(input.folder, retention, () => reserve.release());
      const isAny = deleted.age + deleted.size + deleted.uploaded > 0;
      if (isAny || problem !== undefined) answer({ kind: "deleted", deleted, ...(problem && { problem }) });
    } catch (error) {
      answer({ kind: "deleted", deleted: none, problem: codeOf(error) });
    } finally {
      isDeleting = false;
    }
  };
  const search = setInterval(() => {
    lookForLeft();
    void deleteOld();
  }, SEARCH_MS);
  lookForLeft();
  void deleteOld();
  const uploads = input.store && serveUploads(input.store, input, answer);
  port.on("message", (message: ToThread) => {
    if (message.kind === "retention") {
      retention = message.retention;
      void deleteOld();
      return;
    }
    if (message.kind === "store-ca") {
      uploads?.trust(message.ca);
      return;
    }
    if (message.kind !== "stop") {
      service.receive(message);
      return;
    }
    service.whenIdle(() => {
      clearInterval(timer);
      clearInterval(search);
      uploads?.stop();
      lease.end();
      reserve.release();
      port.close();
    });
  });
}

/** Uploads the folder's recordings until `stop`. A later start repeats an interrupted upload. */
function serveUploads(
  store: RecordingStore,
  { folder, writer, storeCa }: ThreadInput,
  answer: (message: FromThread) => void,
): { trust(ca: string | undefined): void; stop(): void } {
  let ca = storeCa;
  let timer: NodeJS.Timeout | undefined;
  let uploader: Uploader | undefined;
  let isStopped = false;
  let looking: NodeJS.Timeout | undefined;
  let isLooking = false;
  /** A store that hangs, or a long round, must not hide what waits. */
  const look = async (report: (round: UploadRound) => void): Promise<void> => {
    if (uploader === undefined || isLooking) return;
    isLooking = true;
    await uploader.waiting().then(report, () => {});
    isLooking = false;
  };
  const round = async (): Promise<void> => {
    try {
      uploader ??= new (await import("../storage/s3/uploader.ts")).Uploader(folder, store, ca);
      const isActive = isFirstWriter(folder, writer);
      const report = (each: UploadRound): void => answer({ kind: "uploads", round: each, isActive });
      looking = isActive ? setInterval(() => void look(report), UPLOAD_MS) : undefined;
      if (!isStopped) report(await uploader.round(isActive, report));
    } catch {
      // The writing of recordings reports the folder's error.
    }
    clearInterval(looking);
    if (!isStopped) timer = setTimeout(() => void round(), UPLOAD_MS);
  };
  void round();
  return {
    trust: (next) => {
      ca = next;
      uploader?.trust(next);
    },
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
      uploader?.stop();
    },
  };
}
