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
        this.#publish(object);
    });
  }

  publish(served: readonly Ingress[]): void {
    const before = this.#served;
    this.#served = new Set(served.map(keyOf));
    for (const ingress of served) this.#publish(ingress);
    for (const key of before) if (!this.#served.has(key)) this.#takeBack(key);
  }

  /** Resolves when nothing is being written any more. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    await this.#writing;
  }

  #publish(ingress: Ingress): void {
    if (this.#addresses.length > 0 && !this.#isPublished(ingress)) this.#write(ingress, this.#addresses);
  }

  #takeBack(key: string): void {
    const [namespace = "", name = ""] = key.split("/");
    const ingress = this.#options.cluster.get("Ingress", namespace, name);
    // What others wrote meanwhile is theirs.
    if (ingress !== undefined && this.#isPublished(ingress)) this.#write(ingress, []);
  }

  #write(ingress: Ingress, addresses: readonly IngressAddress[]): void {
    // One after the other: thousands of Ingresses are no reason to flood the API server.
    this.#writing = this.#writing.then(() =>
      this.#options.write(ingress, addresses).catch((error) => this.#options.onFailure(ingress, error)),
    );
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
