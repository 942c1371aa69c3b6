// src/lifecycle: what a part of the program is, and the supervisor that starts and stops them in order

import type { GatewayConfiguration } from "../config/configuration.ts";

/** Nothing: well. A text: what is wrong. A note: well enough, with something that operators should see. */
export type Health = string | HealthNote | undefined;

export interface HealthNote {
  readonly note: string;
}

/**
 * A started part of the program. Its builder, in the `component.ts` of its room, resolves when the
 * part runs, and leaves nothing open when it rejects.
 */
export interface Component {
  /** Whether new sessions may come here. Must answer at once; an exception counts as a failure. */
  health?(): Health;
  /** Takes over what can change while it runs, and reads the files that the configuration names. */
  reload?(next: GatewayConfiguration): Promise<void>;
  /**
   * Still takes everything, and asks clients to leave: each connection is closed behind its next answer. `hasSuccessor`: another program
   * on this machine takes what comes back.
   */
  enterLameDuck?(hasSuccessor: boolean): void | Promise<void>;
  /** No new work. Resolves when the work in hand is done, or after `graceMs`. */
  drain?(graceMs: number): Promise<void>;
  /** Lets go of everything that it opened. */
  stop(): void | Promise<void>;
}
