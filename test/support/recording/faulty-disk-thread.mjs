// The recorder's thread on a disk with faults: while the file `fault` in the folder says `full`, writes fail;
// while it says `hang`, they do not return; `die` ends the thread at its next write, once. The file `clock`
// says by how many hours the thread's clock is wrong.
import { readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { systemDisk } from "../../../dist/src/recording/thread/disk.js";
import { serveRecordings } from "../../../dist/src/recording/thread/serve-recordings.js";

const pause = new Int32Array(new SharedArrayBuffer(4));

function fault() {
  try {
    return readFileSync(path.join(workerData.folder, "fault"), "utf8");
  } catch {
    return "";
  }
}

const SystemDate = Date;
const nowMs = () => {
  try {
    return SystemDate.now() + Number(readFileSync(path.join(workerData.folder, "clock"), "utf8")) * 3_600_000;
  } catch {
    return SystemDate.now();
  }
};
globalThis.Date = class extends SystemDate {
  static now() {
    return nowMs();
  }
  constructor(...values) {
    if (values.length === 0) super(nowMs());
    else super(...values);
  }
};

serveRecordings(parentPort, workerData, {
  ...systemDisk,
  write: (handle, bytes, position) => {
    while (fault() === "hang") Atomics.wait(pause, 0, 0, 10);
    if (fault() === "die") {
      rmSync(path.join(workerData.folder, "fault"));
      process.exit(1);
    }
    if (fault() === "full") throw Object.assign(new Error("no space"), { code: "ENOSPC" });
    systemDisk.write(handle, bytes, position);
  },
});
