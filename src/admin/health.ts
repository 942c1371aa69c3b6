import type { Health } from "../lifecycle/component.ts";

/** Must return at once; an exception counts as a failure. */
type HealthCheck = () => Health;

/** Checks by the name that URLs contain: `/readyz/draining`. */
export type HealthChecks = Readonly<Record<string, HealthCheck>>;

export interface HealthAnswer {
  readonly status: 200 | 500;
  readonly body: string;
  /**
   * `name: reason` of each failed check, for the log. Like kube-apiserver's, the list of all checks
   * withholds reasons.
   */
  readonly failures: readonly string[];
}

interface HealthQuery {
  readonly isVerbose: boolean;
  /** Names of checks to ignore. */
  readonly excluded: readonly string[];
}

/**
 * Runs all checks of an endpoint. The answer matches kube-apiserver's byte for byte
 * (k8s.io/apiserver/pkg/server/healthz).
 */
export function answerHealth(endpoint: string, checks: HealthChecks, query: HealthQuery): HealthAnswer {
  const failures: string[] = [];
  const unmatched = new Set(query.excluded);
  const lines = Object.entries(checks).map(([name, check]) => {
    if (unmatched.delete(name)) {
      return `[+]${name} excluded: ok\n`;
    }
    const wrong = outcomeOf(check);
    if (wrong === undefined) {
      return `[+]${name} ok\n`;
    }
    if (typeof wrong === "object") {
      return `[+]${name} ok: ${wrong.note}\n`;
    }
    failures.push(`${name}: ${wrong}`);
    return `[-]${name} failed: reason withheld\n`;
  });
  if (unmatched.size > 0) {
    const names = [...unmatched].map((excluded) => JSON.stringify(excluded)).join(", ");
    lines.push(`warn: some health checks cannot be excluded: no matches for ${names}\n`);
  }
  if (failures.length > 0) {
    return { status: 500, body: `${lines.join("")}${endpoint} check failed\n`, failures };
  }
  const body = query.isVerbose ? `${lines.join("")}${endpoint} check passed\n` : "ok";
  return { status: 200, body, failures };
}

/** Runs a single check: `/readyz/NAME`. */
export function answerSingleCheck(name: string, check: HealthCheck): HealthAnswer {
  const wrong = outcomeOf(check);
  return typeof wrong !== "string"
    ? { status: 200, body: wrong === undefined ? "ok" : `ok: ${wrong.note}\n`, failures: [] }
    : { status: 500, body: `internal server error: ${wrong}\n`, failures: [`${name}: ${wrong}`] };
}

function outcomeOf(check: HealthCheck): Health {
  try {
    return check();
  } catch (reason) {
    return reason instanceof Error ? reason.message : String(reason);
  }
}
