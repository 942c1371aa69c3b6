import type { Ingress } from "../api/networking-objects.ts";

/**
 * The namespace that owns a host: that of the first Ingress with a rule for it. A rule without a
 * host owns none.
 */
export class HostOwners {
  readonly #owners = new Map<string, Ingress>();

  /** Expects Ingresses in order of precedence. */
  constructor(ingresses: readonly Ingress[]) {
    for (const ingress of ingresses) {
      for (const rule of ingress.spec?.rules ?? []) {
        const host = hostOf(rule);
        if (host !== undefined && !this.#owners.has(host)) this.#owners.set(host, ingress);
      }
    }
  }

  /**
   * The first Ingress with this host, if it belongs to another namespace. `host` is in lower case.
   */
  foreignOwnerOf(host: string | undefined, namespace: string | undefined): Ingress | undefined {
    const owner = host === undefined ? undefined : this.#owners.get(host);
    return owner?.metadata.namespace === namespace ? undefined : owner;
  }
}

/** In lower case; undefined means any host. */
export function hostOf({ host }: { readonly host?: string }): string | undefined {
  return host?.toLowerCase() || undefined;
}
