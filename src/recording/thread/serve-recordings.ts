import path from "node:path";
import type { MessagePort } from "node:worker_threads";
import { type Disk, systemDisk } from "./disk.ts";
import { finishLeftParts } from "./finish-left-parts.ts";
import { RecordingService, SYNC_MS } from "./recording-service.ts";
import { ReserveFile } from "./reserve-file.ts";
import type { FromThread, ThreadInput, ToThread } from "./thread-messages.ts";
import { WriterLease } from "./writer-lease.ts";

/** How often recordings of writers that are gone are looked for, after the start. */
const LEFT_SEARCH_MS = 60_000;

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
  const search = setInterval(lookForLeft, LEFT_SEARCH_MS);
  lookForLeft();
  port.on("message", (message: ToThread) => {
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
