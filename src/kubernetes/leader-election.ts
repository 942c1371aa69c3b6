import type { Lease, LeaseSpec } from "../api/networking-objects.ts";
import { leaseShape } from "../api/validation/networking-shapes.ts";
import { isShaped } from "../api/validation/shape.ts";
import { withoutNulls } from "../api/validation/without-nulls.ts";
import { type ApiClient, ApiError, MalformedAnswerError } from "./api-client.ts";
import { collectionPath, objectPath } from "./live-object.ts";

interface LeaderElectionOptions {
  readonly client: Pick<ApiClient, "json">;
  readonly namespace: string;
  readonly name: string;
  /** Unique to this process. */
  readonly identity: string;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  readonly onLeading: () => void;
  readonly onLost: () => void;
  readonly onFailure: (problem: string) => void;
  readonly nowMs?: () => number;
  readonly random?: () => number;
}

/** The Lease as a candidate last saw it, and the time by the candidate's own clock. */
interface Observation {
  readonly lease: Lease;
  readonly text: string;
  readonly atMs: number;
}

/**
 * Elects one leader among replicas, which renews a Lease with client-go's timing. Never compares
 * clocks: a Lease expires when this process has seen it unchanged for its duration.
 */
export class LeaderElection {
  readonly #options: LeaderElectionOptions;
  readonly #nowMs: () => number;
  readonly #stopping = new AbortController();
  #observed: Observation | undefined;
  #renewedMs = Number.NEGATIVE_INFINITY;
  #wasLeading = false;
  #isFailing = false;
  #timer: NodeJS.Timeout | undefined;
  #trying: Promise<void> | undefined;

  constructor(options: LeaderElectionOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  /**
   * Check this before every write: a process that was suspended may have lost the Lease without
   * noticing.
   */
  get isLeading(): boolean {
    return this.#nowMs() - this.#renewedMs < this.#options.renewDeadlineMs;
  }

  start(): void {
    if (this.#trying !== undefined || this.#stopping.signal.aborted) return;
    this.#trying = this.#try();
  }

  /**
   * Releases the Lease if it is ours, so that the next leader need not wait. Call it after the last
   * write.
   */
  async stop(): Promise<void> {
    this.#stopping.abort();
    clearTimeout(this.#timer);
    await this.#trying;
    if (!this.isLeading || this.#observed === undefined) return;
    this.#renewedMs = Number.NEGATIVE_INFINITY;
    const { spec = {} } = this.#observed.lease;
    await this.#put(this.#observed.lease, {
      ...spec,
      holderIdentity: "",
      leaseDurationSeconds: 1,
      renewTime: microTime(),
    }).catch((error: Error) => this.#options.onFailure(error.message));
  }

  async #try(): Promise<void> {
    const askedMs = this.#nowMs();
    try {
      if (await this.#acquireOrRenew()) {
        // The time is taken before the request: other replicas may have seen the renewal as early
        // as then.
        this.#renewedMs = askedMs;
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.#failed(error as Error);
    }
    this.#tellChange();
    if (this.#stopping.signal.aborted) return;
    const { retryPeriodMs, random = Math.random } = this.#options;
    // Candidates add jitter; the leader renews on time.
    const waitMs = this.#wasLeading ? retryPeriodMs : retryPeriodMs * (1 + 0.2 * random());
    this.#timer = setTimeout(() => {
      this.#trying = this.#try();
    }, waitMs).unref();
  }

  #tellChange(): void {
    const { isLeading } = this;
    if (isLeading === this.#wasLeading) return;
    this.#wasLeading = isLeading;
    if (isLeading) this.#options.onLeading();
    else this.#options.onLost();
  }

  async #acquireOrRenew(): Promise<boolean> {
    const { identity, leaseDurationMs } = this.#options;
    const found = await this.#read();
    const at = microTime();
    const ours = { holderIdentity: identity, leaseDurationSeconds: leaseDurationMs / 1_000, renewTime: at };
    if (found === undefined) {
      return this.#written(this.#create({ ...ours, acquireTime: at, leaseTransitions: 0 }));
    }
    this.#observe(found);
    const { holderIdentity = "", acquireTime = at, leaseTransitions = 0 } = found.spec ?? {};
    if (holderIdentity === identity) {
      return this.#written(this.#put(found, { ...ours, acquireTime, leaseTransitions }));
    }
    this.#renewedMs = Number.NEGATIVE_INFINITY;
    if (holderIdentity !== "" && !this.#hasRunOut()) return false;
    return this.#written(
      this.#put(found, { ...ours, acquireTime: at, leaseTransitions: leaseTransitions + 1 }),
    );
  }

  #observe(lease: Lease): void {
    const text = JSON.stringify(lease.spec);
    if (this.#observed?.text === text) {
      this.#observed = { ...this.#observed, lease };
    } else {
      this.#observed = { lease, text, atMs: this.#nowMs() };
    }
  }

  #hasRunOut(): boolean {
    if (this.#observed === undefined) return false;
    const { lease, atMs } = this.#observed;
    const seconds = lease.spec?.leaseDurationSeconds ?? this.#options.leaseDurationMs / 1_000;
    return this.#nowMs() - atMs >= seconds * 1_000;
  }

  /** False if another replica was faster. */
  async #written(writing: Promise<unknown>): Promise<boolean> {
    try {
      this.#observe(readLease(await writing));
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.code === 409) return false;
      throw error;
    }
  }

  async #read(): Promise<Lease | undefined> {
    const { namespace, name } = this.#options;
    try {
      return readLease(await this.#ask({ path: objectPath("Lease", namespace, name) }));
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return undefined;
      throw error;
    }
  }

  #create(spec: LeaseSpec): Promise<unknown> {
    const { namespace, name } = this.#options;
    const json = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name, namespace }, spec };
    const body = { contentType: "application/json", json };
    return this.#ask({ method: "POST", path: collectionPath("Lease", namespace), body });
  }

  /** Sends the version that was read, so that only one of two candidates succeeds. */
  #put(lease: Lease, spec: LeaseSpec): Promise<unknown> {
    const { namespace, name } = this.#options;
    const body = { contentType: "application/json", json: { ...lease, spec } };
    return this.#ask({ method: "PUT", path: objectPath("Lease", namespace, name), body });
  }

  /** Takes at most half the deadline, so that a silent server leaves time for a second try. */
  async #ask(request: Parameters<ApiClient["json"]>[0]): Promise<unknown> {
    const { client, renewDeadlineMs } = this.#options;
    return await client.json({ ...request, signal: AbortSignal.timeout(renewDeadlineMs / 2) });
  }

  #failed({ message }: Error): void {
    if (!this.#isFailing) this.#options.onFailure(message);
    this.#isFailing = true;
  }
}

/** metav1.MicroTime. */
function microTime(): string {
  return new Date().toISOString().replace("Z", "000Z");
}

/**
 * Keeps unknown fields, so that a write sends them back. Drops nulls. Throws MalformedAnswerError.
 */
function readLease(answer: unknown): Lease {
  if (typeof answer !== "object" || answer === null || !isShaped(answer, leaseShape)) {
    throw new MalformedAnswerError("the API server's answer is no Lease");
  }
  return withoutNulls(answer as Lease, leaseShape);
}
