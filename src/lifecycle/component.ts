// src/lifecycle: the component interface, and the supervisor that starts components in order and
// stops them in reverse

import type { GatewayConfiguration } from "../config/configuration.ts";

/** Undefined: healthy. A text: the problem. A note: healthy, with something that operators should see. */
export type Health = string | HealthNote | undefined;

interface HealthNote {
  readonly note: string;
}

/**
 * A started component. Its builder, in the room's `component.ts`, resolves when the component runs; if
 * the builder rejects, it leaves nothing open.
 */
export interface Component {
  /** Whether this process can take new sessions. Must return at once; an exception counts as a failure. */
  health?(): Health;
  /**
   * Applies the fields that can change without a restart, and reads the files that the configuration
   * names again.
   */
  reload?(next: GatewayConfiguration): Promise<void>;
  /**
   * Keeps serving, and asks clients to leave: closes each connection after its next answer.
   * `hasSuccessor`: another program on this machine accepts clients that reconnect.
   */
  enterLameDuck?(hasSuccessor: boolean): void | Promise<void>;
  /** Accepts no new work. Resolves when the running work has finished, or after `graceMs`. */
  drain?(graceMs: number): Promise<void>;
  /** Releases everything that it opened. */
  stop(): void | Promise<void>;
}
