import type { Duplex } from "node:stream";
import type { PassThroughDecoder } from "../decoders/pass-through-decoder.ts";

/** Warnings that wait for the end of the node's present message. Past it the latest are dropped. */
const MAX_WAITING_WARNINGS = 8;

/** A warning on a line of its own, for the user of a terminal. */
export function terminalWarning(message: string): Uint8Array {
  return new TextEncoder().encode(`\r\nsluice: ${message}\r\n`);
}

/** Warnings for a terminal whose output passes through: each is written between two of its messages. */
export class PassedWarnings {
  readonly #decoder: PassThroughDecoder | undefined;
  readonly #downstream: Duplex;
  readonly #waiting: Uint8Array[] = [];

  /** Without `decoder` no warnings are written. */
  constructor(decoder: PassThroughDecoder | undefined, downstream: Duplex) {
    this.#decoder = decoder;
    this.#downstream = downstream;
  }

  add(message: string): void {
    if (this.#decoder?.outputFrame === undefined || this.#waiting.length >= MAX_WAITING_WARNINGS) return;
    this.#waiting.push(terminalWarning(message));
    this.write();
  }

  /** Writes the waiting warnings that can follow the bytes passed so far. */
  write(): void {
    for (let text = this.#waiting[0]; text !== undefined; text = this.#waiting[0]) {
      const frame = this.#downstream.writable ? this.#decoder?.outputFrame?.(text) : undefined;
      if (frame === undefined) return;
      this.#waiting.shift();
      this.#downstream.write(frame);
    }
  }
}
