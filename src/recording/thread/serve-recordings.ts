import type { MessagePort } from "node:worker_threads";
import type { RecordingStore } from "../../config/sections/recording.ts";
import { applyRetention } from "../storage/apply-retention.ts";
import type { Uploader } from "../storage/s3/uploader.ts";
import { codeOf, type Disk, systemDisk } from "./disk.ts";
import { finishLeftParts } from "./finish-left-parts.ts";
import { RecordingService, SYNC_MS } from "./recording-service.ts";
import { ReserveFile } from "./reserve-file.ts";
import type { FromThread, ThreadInput, ToThread } from "./thread-messages.ts";
import { isFirstWriter, reserveOf, WriterLease } from "./writer-lease.ts";

/** How often recordings of writers that are gone, or that are too old, are looked for after the start. */
const SEARCH_MS = 60_000;
/** How often finished recordings are uploaded. */
const UPLOAD_MS = 5_000;

/** Writes recordings for the recorder at the port's other end, until it says stop. */
export function serveRecordings(port: MessagePort, input: ThreadInput, disk: Disk = systemDisk): void {
  // The lease comes first: space that is reserved without one is taken for left.
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
      // One of several processes does it.
      if (!isFirstWriter(input.folder, input.writer)) return;
      const deleted = await applyRetention(input.folder, retention);
      if (deleted.age + deleted.size + deleted.uploaded > 0) answer({ kind: "deleted", deleted });
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

/** Uploads the folder's recordings until it is stopped; what then was being sent, a later start sends. */
function serveUploads(
  store: RecordingStore,
  { folder, writer }: ThreadInput,
  answer: (message: FromThread) => void,
): { stop(): void } {
  let timer: NodeJS.Timeout | undefined;
  let uploader: Uploader | undefined;
  let isStopped = false;
  const round = async (): Promise<void> => {
    try {
      uploader ??= new (await import("../storage/s3/uploader.ts")).Uploader(folder, store);
      const isActive = isFirstWriter(folder, writer);
      if (!isStopped) answer({ kind: "uploads", round: await uploader.round(isActive), isActive });
    } catch {
      // A folder that fails says so where recordings are written.
    }
    if (!isStopped) timer = setTimeout(() => void round(), UPLOAD_MS);
  };
  void round();
  return {
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
      uploader?.stop();
    },
  };
}
