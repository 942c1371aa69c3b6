import path from "node:path";
import type { MessagePort } from "node:worker_threads";
import { type Disk, systemDisk } from "./disk.ts";
import { RecordingService, SYNC_MS } from "./recording-service.ts";
import { ReserveFile } from "./reserve-file.ts";
import type { FromThread, ThreadInput, ToThread } from "./thread-messages.ts";

/** Writes recordings for the recorder at the port's other end, until it says stop. */
export function serveRecordings(port: MessagePort, input: ThreadInput, disk: Disk = systemDisk): void {
  const reserve = new ReserveFile(path.join(input.folder, `reserve-${input.writer}`));
  const answer = (message: FromThread, transfer: readonly ArrayBuffer[] = []): void =>
    port.postMessage(message, [...transfer]);
  const service = new RecordingService(input, answer, reserve, disk);
  const timer = setInterval(() => service.tick(), SYNC_MS);
  port.on("message", (message: ToThread) => {
    if (message.kind !== "stop") {
      service.receive(message);
      return;
    }
    service.whenIdle(() => {
      clearInterval(timer);
      reserve.release();
      port.close();
    });
  });
}
