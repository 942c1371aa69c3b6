import { Duplex } from "node:stream";
import { defaultTimeouts } from "../../src/config/timeouts.ts";
import type { SessionContext, SessionReport, SessionTimeouts } from "../../src/sessions/carriers/session.ts";
import { ManualClock } from "./manual-clock.ts";

/** A socket whose other end is the test: `push` is what arrives, `sent` what was written. */
export class MemorySocket extends Duplex {
  readonly sent: Buffer[] = [];
  override _read(): void {}
  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.sent.push(Buffer.from(chunk));
    done();
  }

  get sentBytes(): Buffer {
    return Buffer.concat(this.sent);
  }
}

/** What a carrier needs beside its sockets, by a clock that stands still, and what it reported. */
export class CarriedSession {
  readonly clock = new ManualClock();
  readonly reports: SessionReport[] = [];
  readonly context: SessionContext;
  overs = 0;

  constructor(timeouts: Partial<SessionTimeouts> = {}) {
    this.context = {
      clock: this.clock,
      lingerTimes: defaultTimeouts,
      timeouts: { ...defaultTimeouts, ...timeouts },
      onOver: () => {
        this.overs += 1;
      },
      onReport: (report) => void this.reports.push(report),
    };
  }
}
