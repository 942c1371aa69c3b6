import { isIP } from "node:net";
import type { Ingress, IngressAddress } from "../api/networking-objects.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { atOnce } from "../lifecycle/slices.ts";

const STATUS_RETRY_MS = 5_000;

/**
 * Writes an Ingress's status; no addresses mean an empty status. The publisher logs and retries
 * rejected writes.
 */
type WriteIngressStatus = (ingress: Ingress, addresses: readonly IngressAddress[]) => Promise<void>;

interface StatusPublisherOptions {
  readonly cluster: Cluster;
  /** IP addresses and host names. */
  readonly addresses: readonly string[];
  readonly write: WriteIngressStatus;
  /** False while another replica writes. Checked before each write. */
  readonly mayWrite?: () => boolean;
  /** The delay before failed writes are retried. */
  readonly retryMs?: number;
  onFailure(ingress: Ingress, error: unknown): void;
}

/**
 * Keeps status.loadBalancer of served Ingresses equal to these addresses, and removes them from
 * others. Publishes only routes in force: an address promises that requests are routed.
 */
export class StatusPublisher {
  readonly #options: StatusPublisherOptions;
  readonly #addresses: readonly IngressAddress[];
  readonly #unsubscribe: () => void;
  #served: ReadonlySet<string> = new Set();
  /** Ingresses that are no longer served, but may still have the address. */
  readonly #revoked = new Set<string>();
  #retry: NodeJS.Timeout | undefined;
  #isStopped = false;
  #writing: Promise<void> = Promise.resolve();
  /** The Ingress whose status is being written. */
  #written = "";

  constructor(options: StatusPublisherOptions) {
    this.#options = options;
    this.#addresses = options.addresses.map((address) =>
      isIP(address) === 0 ? { hostname: address } : { ip: address },
    );
    this.#unsubscribe = options.cluster.subscribe(({ type, object }) => {
      if (object.kind === "Ingress" && (type === "DELETED" || !this.#isPublished(object))) {
        this.#revoked.delete(keyOf(object));
      }
      // Another writer removed the address, or the object was created again.
      if (object.kind === "Ingress" && type !== "DELETED" && this.#served.has(keyOf(object)))
        this.#publish(keyOf(object));
    });
  }

  /** Publishes addresses for these Ingresses and revokes all others. Yields between steps. */
  *publishing(served: readonly Ingress[]): Generator<void, void> {
    const before = this.#served;
    const now = new Set<string>();
    for (const ingress of served) {
      now.add(keyOf(ingress));
      yield;
    }
    this.#served = now;
    for (const key of before) {
      if (!now.has(key)) this.#revoked.add(key);
      yield;
    }
    for (const key of this.#revoked) if (now.has(key)) this.#revoked.delete(key);
    yield* this.#resuming();
  }

  /** Does the writes that another replica or a failure left undone. */
  resume(): void {
    atOnce(this.#resuming());
  }

  *#resuming(): Generator<void, void> {
    for (const key of this.#served) {
      this.#publish(key);
      yield;
    }
    for (const key of this.#revoked) {
      this.#takeBack(key);
      yield;
    }
  }

  /** Resolves after all pending writes. */
  async settled(): Promise<void> {
    for (let writing: Promise<void> | undefined; writing !== this.#writing; ) {
      writing = this.#writing;
      await writing;
    }
  }

  /** Waits for the write in progress; drops queued ones, which the next leader or start will do. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#unsubscribe();
    clearTimeout(this.#retry);
    await this.settled();
  }

  #publish(key: string): void {
    if (this.#addresses.length === 0) return;
    this.#queue(key, (current) =>
      this.#served.has(key) && !this.#isPublished(current) ? this.#addresses : undefined,
    );
  }

  #takeBack(key: string): void {
    // Leaves statuses alone that another program wrote meanwhile.
    this.#queue(key, (current) =>
      !this.#served.has(key) && this.#isPublished(current) && this.#addresses.length > 0 ? [] : undefined,
    );
  }

  /**
   * Writes one status at a time, so that thousands of Ingresses do not flood the API server.
   * `decide` runs now and again just before the write: most Ingresses need no write, and wait for
   * no turn.
   */
  #queue(key: string, decide: (current: Ingress) => readonly IngressAddress[] | undefined): void {
    const { cluster, write, mayWrite = () => true, onFailure } = this.#options;
    if (!mayWrite()) return;
    const [namespace = "", name = ""] = key.split("/");
    const ingressOf = (): Ingress | undefined => cluster.get("Ingress", namespace, name);
    const present = ingressOf();
    // A write to this Ingress that is under way may change the decision, so it is made later.
    if (key !== this.#written && (present === undefined || decide(present) === undefined)) return;
    this.#writing = this.#writing.then(async () => {
      if (this.#isStopped) return;
      const current = ingressOf();
      const addresses = current && decide(current);
      if (current === undefined || addresses === undefined || !mayWrite()) return;
      this.#written = key;
      await write(current, addresses).catch((error) => {
        onFailure(current, error);
        this.#retryLater();
      });
      this.#written = "";
    });
  }

  #retryLater(): void {
    if (this.#retry !== undefined || this.#isStopped) return;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.resume();
    }, this.#options.retryMs ?? STATUS_RETRY_MS).unref();
  }

  #isPublished({ status }: Ingress): boolean {
    const published = status?.loadBalancer?.ingress ?? [];
    return (
      published.length === this.#addresses.length &&
      published.every(
        ({ ip, hostname }, index) =>
          ip === this.#addresses[index]?.ip && hostname === this.#addresses[index]?.hostname,
      )
    );
  }
}

function keyOf({ metadata }: Ingress): string {
  return `${metadata.namespace ?? "default"}/${metadata.name}`;
}
