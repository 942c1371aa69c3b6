import type { Component, Health } from "../lifecycle/component.ts";
import type { Logger } from "../observability/logger.ts";

const DAY_MS = 86_400_000;
/** How long before its end a certificate is logged, the shortest first. */
const THRESHOLDS_MS: readonly number[] = [0, DAY_MS, 30 * DAY_MS];
const CHECK_MS = 3_600_000;

interface FollowedCertificate {
  readonly expiresAtMs: number;
  /** The threshold that was logged last. */
  loggedMs: number;
}

export interface CertificateExpiryOptions {
  readonly logger: Pick<Logger, "warn" | "error">;
  /** Since 1970; for tests. */
  readonly nowMs?: () => number;
}

/** Logs certificates 30 days and 1 day before they expire, and when they do; for operators without an alert on the gauges. */
export class CertificateExpiry implements Component {
  readonly #logger: CertificateExpiryOptions["logger"];
  readonly #nowMs: () => number;
  readonly #followed = new Map<string, FollowedCertificate>();
  readonly #timer: NodeJS.Timeout;

  constructor({ logger, nowMs = Date.now }: CertificateExpiryOptions) {
    this.#logger = logger;
    this.#nowMs = nowMs;
    this.#timer = setInterval(() => this.check(), CHECK_MS).unref();
  }

  /** In the place of the one with that name, whose lines it does not repeat if it expires at the same time. */
  follow(name: string, expiresAtMs: number): void {
    if (this.#followed.get(name)?.expiresAtMs === expiresAtMs) return;
    this.#followed.set(name, { expiresAtMs, loggedMs: Number.POSITIVE_INFINITY });
    this.check();
  }

  forget(name: string): void {
    this.#followed.delete(name);
  }

  check(): void {
    const nowMs = this.#nowMs();
    for (const [name, certificate] of this.#followed) {
      const leftMs = certificate.expiresAtMs - nowMs;
      const reached = THRESHOLDS_MS.find((threshold) => leftMs <= threshold);
      if (reached === undefined || reached >= certificate.loggedMs) continue;
      certificate.loggedMs = reached;
      const expires = new Date(certificate.expiresAtMs).toISOString();
      if (reached === 0) this.#logger.error({ certificate: name, expires }, "a certificate has expired");
      else this.#logger.warn({ certificate: name, expires }, "a certificate expires soon");
    }
  }

  /** Names those that have expired, or will within a day. */
  health(): Health {
    const nowMs = this.#nowMs();
    const near = [...this.#followed].filter(([, { expiresAtMs }]) => expiresAtMs - nowMs <= DAY_MS);
    if (near.length === 0) return undefined;
    const texts = near.map(
      ([name, { expiresAtMs }]) =>
        `${name} ${expiresAtMs <= nowMs ? "expired" : "expires"} ${new Date(expiresAtMs).toISOString()}`,
    );
    return { note: texts.join("; ") };
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
