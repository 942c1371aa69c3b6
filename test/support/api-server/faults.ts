import type { ServerResponse } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import type { StatusError } from "../../../packages/client/src/api/status.ts";
import {
  genericError,
  resourceExpired,
  serviceUnavailable,
  tooManyRequests,
} from "../../../packages/client/src/api/status.ts";

export interface FaultyRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly isWatch: boolean;
}

export type FaultKind =
  | "410"
  | "429"
  | "500"
  | "503"
  | "garbage"
  | "cut"
  | "silence"
  | { readonly delayMs: number };

interface Fault {
  readonly kind: FaultKind;
  readonly isMeant: (request: FaultyRequest) => boolean;
  timesLeft: number;
}

/**
 * Faults that tests inject. They apply in the order in which they were set, each for its number of
 * requests.
 */
export class Faults {
  readonly #faults: Fault[] = [];
  /** The number of requests that got a fault. */
  inflicted = 0;

  add(
    kind: FaultKind,
    { times = 1, on = () => true }: { times?: number; on?: (request: FaultyRequest) => boolean } = {},
  ): void {
    this.#faults.push({ kind, isMeant: on, timesLeft: times });
  }

  clear(): void {
    this.#faults.length = 0;
  }

  /**
   * True if the request has been answered, or never will be. Throws StatusError for faults that the
   * server answers itself.
   */
  async strike(request: FaultyRequest, response: ServerResponse): Promise<boolean> {
    const fault = this.#faults.find(({ isMeant, timesLeft }) => timesLeft > 0 && isMeant(request));
    if (fault === undefined) return false;
    fault.timesLeft--;
    this.inflicted++;
    const { kind } = fault;
    if (typeof kind === "object") {
      await wait(kind.delayMs);
      return false;
    }
    const refusal = refusals[kind];
    if (refusal !== undefined) throw refusal();
    if (kind === "garbage") {
      response.writeHead(200, { "Content-Type": "application/json" });
      response.end('{"type":"ADDED","object":{"kind":"Po\n\u0000<html>not JSON</html>\n');
    }
    if (kind === "cut") {
      response.writeHead(200, { "Content-Type": "application/json" });
      response.write('{"kind":"PodList","items":[{"meta', () => response.destroy());
    }
    return true;
  }
}

const refusals: Readonly<Record<string, (() => StatusError) | undefined>> = {
  "410": () =>
    resourceExpired("The provided continue parameter is too old to display a consistent list result."),
  "429": () => tooManyRequests("too many requests, please try again later", 1),
  "500": () => genericError(500, "etcdserver: request timed out"),
  "503": () => serviceUnavailable("the server is currently unable to handle the request"),
};
