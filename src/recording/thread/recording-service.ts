import { createPrivateKey, type KeyObject } from "node:crypto";
import path from "node:path";
import type { EventCode } from "../format/asciicast.ts";
import { codeOf, type Disk, systemDisk } from "./disk.ts";
import { partOf, RecordingFile } from "./recording-file.ts";
import { SessionWriter } from "./session-writer.ts";
import { partsOf, type SlabPart, TakenSlabs } from "./slab.ts";
import type { FromThread, ThreadInput, ToThread } from "./thread-messages.ts";
import type { Reserve } from "./writer-lease.ts";

/** Ticks between a running recording's entries in the audit log: one minute. */
const TICKS_BETWEEN_HEADS = 60;

/** Bytes of a slab after which they are written; longer strings cost the thread more. */
const WRITE_BYTES = 128 * 1024;

interface OpenRecording {
  readonly file: RecordingFile;
  writer: SessionWriter | undefined;
  /** Milliseconds of this thread's clock. */
  startedMs: number;
  hasFailed: boolean;
}

/** Writes the recordings of one process, apart from the thread's port. */
export class RecordingService {
  readonly #folder: string;
  readonly #writer: string;
  readonly #answer: (message: FromThread, transfer?: readonly ArrayBuffer[]) => void;
  readonly #disk: Disk;
  readonly #taken: TakenSlabs;
  readonly #reserve: Reserve;
  readonly #open = new Map<number, OpenRecording>();
  #key: KeyObject;
  #endings = 0;
  #ticks = 0;
  #onIdle: (() => void) | undefined;

  constructor(
    { folder, writer, signingKey }: ThreadInput,
    answer: (message: FromThread, transfer?: readonly ArrayBuffer[]) => void,
    reserve: Reserve,
    disk: Disk = systemDisk,
  ) {
    this.#folder = folder;
    this.#writer = writer;
    this.#key = createPrivateKey(signingKey);
    this.#answer = answer;
    this.#taken = new TakenSlabs(answer);
    this.#reserve = reserve;
    this.#disk = disk;
  }

  receive(message: Exclude<ToThread, { kind: "stop" | "retention" | "store-ca" }>): void {
    switch (message.kind) {
      case "open":
        this.#create(message.handle, message.file);
        return;
      case "slab":
        this.#take(message.buffer, message.used);
        return;
      case "signing-key":
        this.#key = createPrivateKey(message.signingKey);
        return;
      default:
        this.#ofSession(message);
    }
  }

  /** Call every SYNC_MS. */
  tick(): void {
    this.#reserve.renew();
    this.#ticks += 1;
    for (const [handle, recording] of this.#open) {
      recording.writer?.endChunk(Date.now());
      this.#flush(handle, recording);
      recording.file.sync((error) => this.#failed(handle, recording, error));
      if (this.#ticks % TICKS_BETWEEN_HEADS > 0) continue;
      const last = recording.writer?.lastChunk();
      if (last !== undefined) this.#answer({ kind: "chunk", handle, ...last });
    }
  }

  /** The current signing key. */
  get key(): KeyObject {
    return this.#key;
  }

  /** Calls back once no recording is being ended. */
  whenIdle(listener: () => void): void {
    if (this.#endings === 0) listener();
    else this.#onIdle = listener;
  }

  #create(handle: number, name: string): void {
    try {
      const target = path.join(this.#folder, name);
      const file = new RecordingFile(this.#disk, target, partOf(target, this.#writer));
      this.#open.set(handle, { file, writer: undefined, startedMs: 0, hasFailed: false });
      this.#answer({ kind: "opened", handle });
    } catch (error) {
      this.#answer({ kind: "opened", handle, problem: codeOf(error) });
    }
  }

  #ofSession(message: Exclude<Extract<ToThread, { handle: number }>, { kind: "open" }>): void {
    const { handle } = message;
    const recording = this.#open.get(handle);
    if (recording === undefined) return;
    const { writer, file } = recording;
    switch (message.kind) {
      case "begin":
        recording.startedMs = performance.now();
        recording.writer = new SessionWriter(file, message, this.#key);
        recording.writer.onGap((bytes) => this.#answer({ kind: "gap", handle, bytes }));
        this.#flush(handle, recording);
        return;
      case "lost":
        writer?.lost(message.timeMs, message.bytes, message.seconds, message.sha256);
        return;
      case "write":
        this.#flush(handle, recording);
        this.#answer({ kind: "written", handle });
        return;
      case "discard":
        this.#open.delete(handle);
        this.#discard(file);
        return;
      case "end":
        this.#open.delete(handle);
        this.#end(message, recording);
        return;
    }
  }

  #take(buffer: ArrayBuffer, used: number): void {
    const bytes = new Map<number, number>();
    let unwritten = 0;
    for (const part of partsOf(buffer, used)) {
      bytes.set(part.handle, (bytes.get(part.handle) ?? 0) + part.bytes.byteLength);
      const writer = this.#open.get(part.handle)?.writer;
      if (writer !== undefined) write(writer, part);
      unwritten += part.bytes.byteLength;
      if (unwritten < WRITE_BYTES) continue;
      this.#flushAll(bytes.keys());
      unwritten = 0;
    }
    if (unwritten > 0) this.#flushAll(bytes.keys());
    this.#taken.add(buffer, bytes);
  }

  #flushAll(handles: Iterable<number>): void {
    for (const handle of handles) {
      const recording = this.#open.get(handle);
      if (recording !== undefined) this.#flush(handle, recording);
    }
  }

  #flush(handle: number, recording: OpenRecording): void {
    const { writer } = recording;
    if (writer === undefined) return;
    const error = writer.flush(performance.now() - recording.startedMs);
    if (error === undefined) recording.hasFailed = false;
    else this.#failed(handle, recording, error);
  }

  #failed(handle: number, recording: OpenRecording, error: Error): void {
    if (recording.hasFailed) return;
    recording.hasFailed = true;
    this.#answer({ kind: "failed", handle, problem: codeOf(error) });
  }

  #end(message: Extract<ToThread, { kind: "end" }>, { file, writer, startedMs }: OpenRecording): void {
    const { handle, timeMs, cause, exitCode, countedBytes } = message;
    if (writer === undefined) {
      this.#discard(file);
      return;
    }
    if (countedBytes > 0) writer.counted(timeMs, countedBytes);
    const finished = writer.end(timeMs, Date.now(), cause, exitCode);
    let error = writer.flush(performance.now() - startedMs);
    if (error !== undefined) {
      this.#reserve.release();
      error = writer.flush(performance.now() - startedMs);
    }
    if (error !== undefined) {
      file.leave(codeOf(error));
      this.#answer({ kind: "ended", handle, problem: codeOf(error) });
      return;
    }
    this.#endings += 1;
    file.finish((problem) => {
      this.#endings -= 1;
      this.#answer({
        kind: "ended",
        handle,
        ...(problem === null ? { finished } : { problem: codeOf(problem) }),
      });
      if (this.#endings === 0) this.#onIdle?.();
    });
  }

  #discard(file: RecordingFile): void {
    try {
      file.discard();
    } catch {
      // The next start removes the empty file.
    }
  }
}

function write(writer: SessionWriter, { kind, timeMs, bytes }: SlabPart): void {
  const part = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  switch (kind) {
    case "stdout":
    case "stderr":
      writer.output(kind, timeMs, part);
      return;
    case "resize":
      writer.resize(timeMs, { columns: part.readUInt16BE(0), rows: part.readUInt16BE(2) });
      return;
    case "event":
      writer.event(timeMs, part.toString("latin1", 0, 1) as EventCode, part.toString("utf8", 1));
      return;
    case "input":
      writer.input(timeMs, part);
      return;
  }
}
