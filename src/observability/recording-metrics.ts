import type { Registry } from "prom-client";
import { counter, gauge, type MetricsOf, register } from "./metric-table.ts";

const RECORDING_FAMILIES = {
  sessions: gauge("sluice_recording_sessions", "Sessions that are being recorded."),
  queuedBytes: gauge("sluice_recording_queued_bytes", "Output that waits to be written to recordings."),
  recordings: counter(
    "sluice_recordings_total",
    "Recordings that ended: written, or failed while their session ran or at its end.",
    { result: ["written", "failed"] },
  ),
  notBegun: counter(
    "sluice_recordings_not_begun_total",
    "Sessions whose recording could not begin; recordOnFailure decided about the session.",
  ),
  bytes: counter(
    "sluice_recording_bytes_total",
    "Output of sessions with a recording, added at their end: recorded, counted beyond maxOutputBytes, or lost in a gap.",
    { as: ["recorded", "counted", "lost"] },
  ),
  gaps: counter("sluice_recording_gaps_total", "Gaps in recordings, each marked in its recording."),
  writeFailures: counter(
    "sluice_recording_write_failures_total",
    "Recordings that could not be written for a while, such as on a full disk.",
  ),
  left: counter(
    "sluice_recordings_left_total",
    "Recordings that a process left unfinished: finished by another, or set aside because they were changed.",
    { outcome: ["finished", "set-aside"] },
  ),
  deleted: counter(
    "sluice_recordings_deleted_total",
    "Recordings that were deleted from the folder, by the bound that was passed; uploaded: they are in the store.",
    {
      reason: ["age", "size", "uploaded"],
    },
  ),
  uploads: counter(
    "sluice_recording_uploads_total",
    "Recordings that were uploaded to the store, and attempts that failed.",
    { result: ["uploaded", "failed"] },
  ),
  uploadWaitingBytes: gauge(
    "sluice_recording_upload_waiting_bytes",
    "Finished recordings that wait for their upload. Processes that share a folder have one that uploads; the others say 0.",
  ),
  uploadOldestSeconds: gauge(
    "sluice_recording_upload_oldest_seconds",
    "Since the oldest recording that waits for its upload ended; 0 without any.",
  ),
  heldSeconds: counter(
    "sluice_recording_held_seconds_total",
    "Time that sessions waited for their recording to be written.",
  ),
};

interface Uploads {
  readonly uploaded: number;
  readonly failed: number;
  readonly waitingBytes: number;
  readonly oldestMs: number;
}

/** The recorder's metrics, in each process that records. */
export class RecordingMetrics {
  readonly #metrics: MetricsOf<typeof RECORDING_FAMILIES>;

  constructor(registry: Registry, running: () => { readonly size: number; readonly queuedBytes: number }) {
    this.#metrics = register(registry, RECORDING_FAMILIES, {
      sessions: (metric) => metric.set(running().size),
      queuedBytes: (metric) => metric.set(running().queuedBytes),
    });
  }

  ended(result: "written" | "failed"): void {
    this.#metrics.recordings.inc({ result });
  }

  notBegun(): void {
    this.#metrics.notBegun.inc();
  }

  bytes(recorded: number, counted: number, lost: number): void {
    this.#metrics.bytes.inc({ as: "recorded" }, Math.max(0, recorded - lost));
    this.#metrics.bytes.inc({ as: "counted" }, counted);
    this.#metrics.bytes.inc({ as: "lost" }, lost);
  }

  gap(): void {
    this.#metrics.gaps.inc();
  }

  writeFailed(): void {
    this.#metrics.writeFailures.inc();
  }

  left(outcome: "finished" | "set-aside"): void {
    this.#metrics.left.inc({ outcome });
  }

  deleted(deleted: Readonly<Record<"age" | "size" | "uploaded", number>>): void {
    for (const reason of ["age", "size", "uploaded"] as const)
      this.#metrics.deleted.inc({ reason }, deleted[reason]);
  }

  uploads(round: Uploads): void {
    this.#metrics.uploads.inc({ result: "uploaded" }, round.uploaded);
    this.#metrics.uploads.inc({ result: "failed" }, round.failed);
    this.#metrics.uploadWaitingBytes.set(round.waitingBytes);
    this.#metrics.uploadOldestSeconds.set(round.oldestMs / 1_000);
  }

  held(seconds: number): void {
    this.#metrics.heldSeconds.inc(seconds);
  }
}
