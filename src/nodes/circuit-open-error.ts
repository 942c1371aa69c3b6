import { StatusError } from "@sluice/client/internal/api/status";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";

/**
 * 503 without a dial, because the node's circuit is open. The opening was logged, so requests need
 * not log it again.
 */
export class CircuitOpenError extends StatusError {
  constructor(name: string, failures: number, reason: string, retryInMs: number) {
    const seconds = Math.max(1, Math.ceil(retryInMs / 1_000));
    const times = failures === 1 ? "once" : `${failures} times in a row`;
    const node = JSON.stringify(name);
    super(WIRE_ERRORS["node-failing"].streaming({ node, times, seconds, reason }).status);
  }
}
