import path from "node:path";
import type { MessagePort } from "node:worker_threads";
import { applyRetention } from "../storage/apply-retention.ts";
import { type Disk, systemDisk } from "./disk.ts";
import { finishLeftParts } from "./finish-left-parts.ts";
import { codeOf, RecordingService, SYNC_MS } from "./recording-service.ts";
import { ReserveFile } from "./reserve-file.ts";
import type { FromThread, ThreadInput, ToThread } from "./thread-messages.ts";
import { isFirstWriter, WriterLease } from "./writer-lease.ts";

/** How often recordings of writers that are gone, or that are too old, are looked for after the start. */
const SEARCH_MS = 60_000;

/** Writes recordings for the recorder at the port's other end, until it says stop. */
export function serveRecordings(port: MessagePort, input: ThreadInput, disk: Disk = systemDisk): void {
  const reserve = new ReserveFile(path.join(input.folder, `reserve-${input.writer}`));
  const answer = (message: FromThread, transfer: readonly ArrayBuffer[] = []): void =>
    port.postMessage(message, [...transfer]);
  const service = new RecordingService(input, answer, reserve, disk);
  const lease = new WriterLease(input.folder, input.writer);
  const timer = setInterval(() => {
    lease.renew();
    service.tick();
  }, SYNC_MS);
  const lookForLeft = (): void =>
    void finishLeftParts(input.folder, input.writer, service.key, (outcome, file) =>
      answer({ kind: "left", outcome, file }),
    ).catch(() => {});
  const none = { age: 0, size: 0 };
  let { retention } = input;
  let isDeleting = false;
  const deleteOld = async (): Promise<void> => {
    // One of several processes does it.
    if (isDeleting || !isFirstWriter(input.folder, input.writer)) return;
    isDeleting = true;
    try {
      const deleted = await applyRetention(input.folder, retention);
      if (deleted.age + deleted.size > 0) answer({ kind: "deleted", deleted });
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
      lease.end();
      reserve.release();
      port.close();
    });
  });
}
