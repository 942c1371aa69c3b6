import { Duplex } from "node:stream";
import { SessionLifecycle } from "../../src/sessions/lifecycle.ts";
import type { SessionObserver } from "../../src/sessions/observers/session-observer.ts";
import { SessionObservers } from "../../src/sessions/observers/session-observers.ts";
import type { SessionReport, SessionTimeouts, StreamingSession } from "../../src/sessions/session.ts";
import { Sessions } from "../../src/sessions/sessions.ts";
import { defaultTimeouts } from "./default-configuration.ts";
import { ManualClock } from "./manual-clock.ts";

/**
 * A socket whose other end is the test: `push` delivers bytes to it, `sent` is what was written.
 */
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

/**
 * Runs a carrier between two sockets in memory, with a clock that stands still, and records what it
 * reports.
 */
export class CarriedSession {
  readonly clock = new ManualClock();
  readonly sessions = new Sessions(10);
  readonly client = new MemorySocket();
  readonly node = new MemorySocket();
  readonly reports: SessionReport[] = [];
  readonly life: SessionLifecycle;
  overs = 0;

  constructor(timeouts: Partial<SessionTimeouts> = {}, observers: readonly SessionObserver[] = []) {
    const owner = {
      onOver: () => {
        this.overs += 1;
      },
      onReport: (report: SessionReport) => void this.reports.push(report),
    };
    const times = { ...defaultTimeouts, ...timeouts };
    this.life = new SessionLifecycle(this, times, owner, new SessionObservers(observers));
  }

  carry<Carrier extends StreamingSession>(begin: (life: SessionLifecycle) => Carrier): Carrier {
    let carrier: Carrier | undefined;
    this.life.carry([this.client, this.node], (life) => {
      carrier = begin(life);
      return carrier;
    });
    if (carrier === undefined) throw new Error("the carrier did not begin");
    return carrier;
  }

  get causes(): string[] {
    return this.reports.map(({ cause }) => cause);
  }
}
