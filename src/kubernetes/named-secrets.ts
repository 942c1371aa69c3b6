import { BACKEND_CA_SECRET_ANNOTATION, type Ingress } from "../api/networking-objects.ts";
import { subdomainProblems } from "../api/validation/name-rules.ts";
import type { Cluster } from "../cluster/cluster.ts";

/**
 * Secrets that Ingresses name; each has its own watch. Past it further certificates are not loaded,
 * and a log line says so.
 */
const MAX_WATCHED_SECRETS = 1_000;

interface NamedSecretsOptions {
  readonly cluster: Pick<Cluster, "list" | "subscribe">;
  /** Starts watching the Secret; the returned function stops and forgets it. */
  readonly follow: (namespace: string, name: string) => () => void;
  readonly onTooMany: (wanted: number) => void;
  readonly maxSecrets?: number;
}

/**
 * Watches only the TLS Secrets that Ingresses and their backends name. A role may then allow only
 * these, and the gateway keeps no other Secret in memory.
 */
export class NamedSecrets {
  readonly #options: NamedSecretsOptions;
  readonly #followed = new Map<string, () => void>();
  readonly #unsubscribe: () => void;
  #isScheduled = false;
  #isStopped = false;

  constructor(options: NamedSecretsOptions) {
    this.#options = options;
    this.#unsubscribe = options.cluster.subscribe(({ object }) => {
      if (object.kind === "Ingress") this.#schedule();
    });
    this.#schedule();
  }

  get size(): number {
    return this.#followed.size;
  }

  stop(): void {
    this.#isStopped = true;
    this.#unsubscribe();
    for (const unfollow of this.#followed.values()) unfollow();
    this.#followed.clear();
  }

  /** One list causes thousands of changes; the names are collected once, after all of them. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (!this.#isStopped) this.#reconcile();
    });
  }

  #reconcile(): void {
    const { cluster, follow, onTooMany, maxSecrets = MAX_WATCHED_SECRETS } = this.#options;
    const wanted = new Map(cluster.list("Ingress").flatMap(secretsOf));
    for (const [key, unfollow] of this.#followed) {
      if (wanted.has(key)) continue;
      this.#followed.delete(key);
      unfollow();
    }
    for (const [key, [namespace, name]] of wanted) {
      if (this.#followed.has(key)) continue;
      if (this.#followed.size >= maxSecrets) {
        onTooMany(wanted.size);
        return;
      }
      this.#followed.set(key, follow(namespace, name));
    }
  }
}

function secretsOf({ metadata, spec }: Ingress): [string, readonly [namespace: string, name: string]][] {
  const { namespace = "" } = metadata;
  const authority = metadata.annotations?.[BACKEND_CA_SECRET_ANNOTATION] ?? "";
  const names = (spec?.tls ?? []).map(({ secretName }) => secretName);
  // No API server has validated this name, and it would become part of a field selector.
  if (subdomainProblems(authority).length === 0) names.push(authority);
  return names.flatMap((name) => (name ? [[`${namespace}/${name}`, [namespace, name]]] : []));
}
