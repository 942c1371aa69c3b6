import { isIP } from "node:net";
import type { Ingress, IngressAddress } from "../api/networking-objects.ts";
import type { Cluster } from "../cluster/cluster.ts";

/** Writes the status of one Ingress, or an empty one. Rejections are the publisher's to log; the next change tries again. */
export type WriteIngressStatus = (ingress: Ingress, addresses: readonly IngressAddress[]) => Promise<void>;

export interface StatusPublisherOptions {
  readonly cluster: Cluster;
  /** IP addresses and host names. */
  readonly addresses: readonly string[];
  readonly write: WriteIngressStatus;
  onFailure(ingress: Ingress, error: unknown): void;
}

/**
 * Keeps status.loadBalancer of the Ingresses that are served equal to where this front door is, and takes it back from those
 * that no longer are. To be told only what is in force: an address is a promise that requests are routed.
 */
export class StatusPublisher {
  readonly #options: StatusPublisherOptions;
  readonly #addresses: readonly IngressAddress[];
  readonly #unsubscribe: () => void;
  #served: ReadonlySet<string> = new Set();
  #writing: Promise<void> = Promise.resolve();

  constructor(options: StatusPublisherOptions) {
    this.#options = options;
    this.#addresses = options.addresses.map((address) =>
      isIP(address) === 0 ? { hostname: address } : { ip: address },
    );
    this.#unsubscribe = options.cluster.subscribe(({ type, object }) => {
      // Somebody took our address away, or the object came back without it.
      if (object.kind === "Ingress" && type !== "DELETED" && this.#served.has(keyOf(object)))
        this.#publish(keyOf(object));
    });
  }

  publish(served: readonly Ingress[]): void {
    const before = this.#served;
    this.#served = new Set(served.map(keyOf));
    for (const key of this.#served) this.#publish(key);
    for (const key of before) if (!this.#served.has(key)) this.#takeBack(key);
  }

  /** Resolves when all that was to be written is. */
  async settled(): Promise<void> {
    for (let writing: Promise<void> | undefined; writing !== this.#writing; ) {
      writing = this.#writing;
      await writing;
    }
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    await this.settled();
  }

  #publish(key: string): void {
    if (this.#addresses.length === 0) return;
    this.#queue(key, (current) =>
      this.#served.has(key) && !this.#isPublished(current) ? this.#addresses : undefined,
    );
  }

  #takeBack(key: string): void {
    // What others wrote meanwhile is theirs.
    this.#queue(key, (current) =>
      !this.#served.has(key) && this.#isPublished(current) && this.#addresses.length > 0 ? [] : undefined,
    );
  }

  /** One after the other: thousands of Ingresses are no reason to flood the API server. What is written is decided when its turn comes. */
  #queue(key: string, decide: (current: Ingress) => readonly IngressAddress[] | undefined): void {
    const { cluster, write, onFailure } = this.#options;
    this.#writing = this.#writing.then(async () => {
      const [namespace = "", name = ""] = key.split("/");
      const current = cluster.get("Ingress", namespace, name);
      const addresses = current && decide(current);
      if (current === undefined || addresses === undefined) return;
      await write(current, addresses).catch((error) => onFailure(current, error));
    });
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
