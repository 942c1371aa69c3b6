import type { Ingress } from "../api/networking-objects.ts";

export interface IngressProblem {
  readonly ingress: Ingress;
  readonly reason: string;
  readonly message: string;
  /** For the log alone: what the owner of the Ingress need not know. */
  readonly owner?: string;
}

export interface ProblemReporterOptions {
  readonly log: (problem: IngressProblem) => void;
  /** Tells the Ingress' owner, by an Event. */
  readonly tell: (problem: IngressProblem) => void;
  /** False while another replica tells. */
  readonly mayTell: () => boolean;
}

/** Reports each rule that is not served as written once for as long as it is there, however often routes are compiled. */
export class ProblemReporter {
  readonly #options: ProblemReporterOptions;
  #present = new Map<string, { readonly problem: IngressProblem; isTold: boolean }>();

  constructor(options: ProblemReporterOptions) {
    this.#options = options;
  }

  /** All that there is at present. */
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

  /** What was not told while another replica did. */
  tellRest(): void {
    const { tell, mayTell } = this.#options;
    if (!mayTell()) return;
    for (const entry of this.#present.values()) {
      if (!entry.isTold) tell(entry.problem);
      entry.isTold = true;
    }
  }
}

function keyOf({ ingress: { metadata }, reason, message }: IngressProblem): string {
  return `${metadata.namespace ?? "default"}/${metadata.name} ${metadata.uid ?? ""} ${reason} ${message}`;
}
