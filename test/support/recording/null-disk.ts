import type { Disk } from "../../../src/recording/thread/disk.ts";

/** A disk that succeeds at everything but keeps nothing; tests extend it. */
export abstract class NullDisk implements Disk {
  abstract write(handle: number, bytes: Uint8Array, position: number): void;
  create(): number {
    return 1;
  }
  sync(_handle: number, done: (error: Error | null) => void): void {
    done(null);
  }
  truncate(): void {}
  close(): void {}
  rename(): void {}
  syncNames(_file: string, done: (error: Error | null) => void): void {
    done(null);
  }
  remove(): void {}
}
