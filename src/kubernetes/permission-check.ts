import type { Logger } from "../observability/logger.ts";
import type { ApiClient } from "./api-client.ts";
import type { RequiredRule } from "./required-rules.ts";

/** The interval between checks while permissions are missing, unknown or in doubt. */
const CHECK_AGAIN_MS = 60_000;
const REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

interface PermissionCheckOptions {
  readonly client: Pick<ApiClient, "json">;
  readonly rules: readonly RequiredRule[];
  readonly logger: Pick<Logger, "info" | "warn">;
  readonly checkAgainMs?: number;
}

/**
 * Checks by SelfSubjectAccessReviews that the gateway's account has all permissions it needs: until
 * it has them, and again after each 403 from the API server.
 */
export class PermissionCheck {
  readonly #options: PermissionCheckOptions;
  readonly #ended = new AbortController();
  #missing: readonly string[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isChecking = false;
  #isInDoubt = false;
  #doubtedMs = Number.NEGATIVE_INFINITY;

  constructor(options: PermissionCheckOptions) {
    this.#options = options;
    void this.#check();
  }

  /**
   * Missing permissions, such as `create tokenreviews.authentication.k8s.io
   * (authentication.tokenReview)`. Empty while unknown.
   */
  get missing(): readonly string[] {
    return this.#missing;
  }

  /**
   * Call it after a 403: a permission may have been revoked. Checks now, at most once an interval.
   */
  doubt(): void {
    this.#isInDoubt = true;
    if (!this.#isChecking && this.#timer === undefined)
      this.#checkIn(this.#doubtedMs + this.#checkAgainMs - performance.now());
  }

  stop(): void {
    this.#ended.abort();
    clearTimeout(this.#timer);
  }

  async #check(): Promise<void> {
    const { logger } = this.#options;
    this.#timer = undefined;
    this.#isChecking = true;
    if (this.#isInDoubt) this.#doubtedMs = performance.now();
    this.#isInDoubt = false;
    let isDone = false;
    try {
      const missing = await this.#ask();
      if (missing.length > 0 && missing.join() !== this.#missing.join())
        logger.warn({ missing }, "the gateway's account lacks permissions: see `sluice rbac`");
      else if (missing.length === 0 && this.#missing.length > 0)
        logger.info({}, "the gateway's account has all permissions that it needs");
      this.#missing = missing;
      isDone = missing.length === 0;
    } catch {
      // Other readers of the API already report an unreachable server.
    }
    this.#isChecking = false;
    if (!isDone) this.#checkIn(this.#checkAgainMs);
    // The permission may have been revoked after this check asked.
    else if (this.#isInDoubt) this.doubt();
  }

  get #checkAgainMs(): number {
    return this.#options.checkAgainMs ?? CHECK_AGAIN_MS;
  }

  #checkIn(ms: number): void {
    if (this.#ended.signal.aborted) return;
    this.#timer = setTimeout(() => void this.#check(), Math.max(0, ms)).unref();
  }

  /** One request at a time: nothing waits for the answers. */
  async #ask(): Promise<string[]> {
    const missing: string[] = [];
    const newest = Math.max(...this.#options.rules.map(({ sinceMinor = 0 }) => sinceMinor));
    if (newest > 0) missing.push(...(await this.#olderThan(newest)));
    for (const rule of this.#options.rules) {
      const { apiGroup, resources, verbs, neededBy, isChecked, namespace, resourceNames = [] } = rule;
      for (const resource of isChecked ? resources : []) {
        const refused: string[] = [];
        for (const verb of verbs)
          if (!(await this.#mayDo(verb, apiGroup, resource, namespace, resourceNames[0]))) refused.push(verb);
        const name = apiGroup === "" ? resource : `${resource}.${apiGroup}`;
        if (refused.length > 0) missing.push(`${refused.join(", ")} ${name} (${neededBy})`);
      }
    }
    return missing;
  }

  /** An API server ignores rules with verbs that it does not know. */
  async #olderThan(minor: number): Promise<string[]> {
    const version = await this.#options.client.json({
      method: "GET",
      path: "/version",
      signal: this.#ended.signal,
    });
    const { gitVersion = "" } = version as { gitVersion?: string };
    const [, found] = /^v1\.(\d+)/.exec(gitVersion) ?? [];
    if (found === undefined || Number(found) >= minor) return [];
    return [
      `an API server of Kubernetes 1.${minor} (cluster.impersonation: constrained): it is ${gitVersion}`,
    ];
  }

  async #mayDo(
    verb: string,
    group: string,
    what: string,
    namespace: string | undefined,
    name: string | undefined,
  ): Promise<boolean> {
    const cut = what.indexOf("/");
    const [resource, subresource] = cut === -1 ? [what, ""] : [what.slice(0, cut), what.slice(cut + 1)];
    const json = {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      spec: { resourceAttributes: { verb, group, resource, subresource, namespace, name } },
    };
    const body = { contentType: "application/json", json };
    const review = await this.#options.client.json({
      method: "POST",
      path: REVIEWS,
      body,
      signal: this.#ended.signal,
    });
    return (review as { status?: { allowed?: unknown } } | null)?.status?.allowed === true;
  }
}
