import { DEFAULT_CLASS_ANNOTATION, type Ingress, type IngressClass } from "../api/networking-objects.ts";

const LEGACY_CLASS_ANNOTATION = "kubernetes.io/ingress.class";

export interface ClassOptions {
  readonly controllerName: string;
  /** Another value that the legacy annotation may have. */
  readonly legacyClassName: string | undefined;
  /** Serves Ingresses without a class if there is no default class. */
  readonly servesWithoutClass: boolean;
}

/**
 * Chooses the served Ingresses by annotation, else by IngressClass, else by the default class (an
 * API server's admission would fill that in), else by option.
 */
export class IngressClasses {
  readonly #options: ClassOptions;
  readonly #ours: ReadonlyMap<string, IngressClass>;
  readonly #default: string | undefined;

  constructor(classes: readonly IngressClass[], options: ClassOptions) {
    this.#options = options;
    const ours = classes.filter(({ spec }) => spec?.controller === options.controllerName);
    this.#ours = new Map(ours.map((each) => [each.metadata.name, each]));
    this.#default = defaultClassOf(classes)?.metadata.name;
  }

  owns({ metadata, spec }: Ingress): boolean {
    const annotated = metadata.annotations?.[LEGACY_CLASS_ANNOTATION];
    if (annotated !== undefined) {
      return this.#ours.has(annotated) || annotated === this.#options.legacyClassName;
    }
    const named = spec?.ingressClassName ?? this.#default;
    return named === undefined ? this.#options.servesWithoutClass : this.#ours.has(named);
  }

  /** The warning for an Ingress whose class has parameters: the gateway supports none. */
  ignoredParametersOf({ metadata, spec }: Ingress): string | undefined {
    const name =
      metadata.annotations?.[LEGACY_CLASS_ANNOTATION] ?? spec?.ingressClassName ?? this.#default ?? "";
    const parameters = this.#ours.get(name)?.spec?.parameters;
    if (parameters === undefined) return undefined;
    const named = `${parameters.kind} ${JSON.stringify(parameters.name)}`;
    return `IngressClass ${JSON.stringify(name)} has spec.parameters (${named}), which are not read`;
  }

  /** The warning for an Ingress that names two classes, one of them ours. */
  conflictOf({ metadata, spec }: Ingress): string | undefined {
    const annotated = metadata.annotations?.[LEGACY_CLASS_ANNOTATION];
    const named = spec?.ingressClassName;
    if (annotated === undefined || named === undefined || annotated === named) return undefined;
    const isOurs = this.#ours.has(annotated) || annotated === this.#options.legacyClassName;
    if (!isOurs && !this.#ours.has(named)) return undefined;
    const [used, ignored] = [annotated, named].map((name) => JSON.stringify(name));
    return `the annotation ${LEGACY_CLASS_ANNOTATION} says ${used} and is followed, spec.ingressClassName ${ignored} is not`;
  }
}

/**
 * The newest default class, by name among equals, as the admission plugin DefaultIngressClass
 * chooses.
 */
function defaultClassOf(classes: readonly IngressClass[]): IngressClass | undefined {
  return classes
    .filter(({ metadata }) => metadata.annotations?.[DEFAULT_CLASS_ANNOTATION] === "true")
    .toSorted((a, b) => {
      const [older, newer] = [a.metadata.creationTimestamp ?? "", b.metadata.creationTimestamp ?? ""];
      if (older !== newer) return older < newer ? 1 : -1;
      return a.metadata.name < b.metadata.name ? -1 : 1;
    })[0];
}

/**
 * The namespace that owns a host: that of the first Ingress with a rule for it. A rule without a
 * host owns none.
 */
export class HostOwners {
  readonly #owners: ReadonlyMap<string, Ingress>;

  private constructor(owners: ReadonlyMap<string, Ingress>) {
    this.#owners = owners;
  }

  /** Expects Ingresses in order of precedence. */
  static *finding(ingresses: readonly Ingress[]): Generator<void, HostOwners> {
    const owners = new Map<string, Ingress>();
    for (const ingress of ingresses) {
      for (const rule of ingress.spec?.rules ?? []) {
        const host = hostOf(rule);
        if (host !== undefined && !owners.has(host)) owners.set(host, ingress);
      }
      yield;
    }
    return new HostOwners(owners);
  }

  /**
   * The first Ingress with this host, if it belongs to another namespace. `host` is in lower case.
   */
  foreignOwnerOf(host: string | undefined, namespace: string | undefined): Ingress | undefined {
    const owner = host === undefined ? undefined : this.#owners.get(host);
    return owner?.metadata.namespace === namespace ? undefined : owner;
  }
}

/** In lower case; undefined: any host. */
export function hostOf({ host }: { readonly host?: string }): string | undefined {
  return host?.toLowerCase() || undefined;
}
