import { nodeUnreachable, StatusError } from "@sluice/client/internal/api/status";

/**
 * 503 without a dial, because the node's circuit is open. The opening was logged, so requests need
 * not log it again.
 */
export class CircuitOpenError extends StatusError {
  constructor(name: string, failures: number, reason: string, retryInMs: number) {
    const seconds = Math.max(1, Math.ceil(retryInMs / 1_000));
    const times = failures === 1 ? "once" : `${failures} times in a row`;
    const message = `error dialing backend: node ${JSON.stringify(name)} failed ${times} and is not dialled for ${seconds}s: ${reason}`;
    super(nodeUnreachable(message, seconds).status);
  }
}
