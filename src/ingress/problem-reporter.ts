import type { RouteOrigin } from "./route.ts";

export interface IngressProblem {
  readonly origin: RouteOrigin;
  readonly reason: string;
  readonly message: string;
  /** Only logged: the origin's owner must not see it. */
  readonly owner?: string;
}

interface ProblemReporterOptions {
  readonly log: (problem: IngressProblem) => void;
  /** Sends an Event to the origin's owner. */
  readonly tell: (problem: IngressProblem) => void;
  /** False while another replica sends the Events. */
  readonly mayTell: () => boolean;
}

/** Reports each problem once while it lasts, however often the routes are compiled. */
export class ProblemReporter {
  readonly #options: ProblemReporterOptions;
  #present = new Map<string, { readonly problem: IngressProblem; isTold: boolean }>();

  constructor(options: ProblemReporterOptions) {
    this.#options = options;
  }

  /** Expects the complete list of present problems. */
  report(problems: readonly IngressProblem[]): void {
    const before = this.#present;
    this.#present = new Map();
    for (const problem of problems) {
      const key = keyOf(problem);
      const known = before.get(key);
      if (known === undefined) this.#options.log(problem);
      this.#present.set(key, { problem, isTold: known?.isTold ?? false });
    }
    this.tellRest();
  }

  /** Reports the problems that were left to another replica. */
  tellRest(): void {
    const { tell, mayTell } = this.#options;
    if (!mayTell()) return;
    for (const entry of this.#present.values()) {
      if (!entry.isTold) tell(entry.problem);
      entry.isTold = true;
    }
  }
}

function keyOf({ origin: { metadata }, reason, message }: IngressProblem): string {
  return `${metadata.namespace ?? "default"}/${metadata.name} ${metadata.uid ?? ""} ${reason} ${message}`;
}
