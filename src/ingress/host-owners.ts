import type { Ingress } from "../api/networking-objects.ts";

/** Which namespace a host belongs to: that of the first Ingress with a rule for it. Rules without a host belong to none. */
export class HostOwners {
  readonly #owners = new Map<string, Ingress>();

  /** Takes Ingresses in order of precedence. */
  constructor(ingresses: readonly Ingress[]) {
    for (const ingress of ingresses) {
      for (const rule of ingress.spec?.rules ?? []) {
        const host = hostOf(rule);
        if (host !== undefined && !this.#owners.has(host)) this.#owners.set(host, ingress);
      }
    }
  }

  /** The Ingress that named the host first, where that is one of another namespace. `host` in lower case. */
  foreignOwnerOf(host: string | undefined, namespace: string | undefined): Ingress | undefined {
    const owner = host === undefined ? undefined : this.#owners.get(host);
    return owner?.metadata.namespace === namespace ? undefined : owner;
  }
}

/** In lower case; undefined: any host. */
export function hostOf({ host }: { readonly host?: string }): string | undefined {
  return host?.toLowerCase() || undefined;
}
