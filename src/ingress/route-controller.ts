import type { Ingress } from "../api/networking-objects.ts";
import type { Cluster, ClusterChange } from "../cluster/cluster.ts";
import type { HostOwnership } from "../config/sections/ingress-listener.ts";
import { inSlices } from "../lifecycle/slices.ts";
import {
  type CertificateAndKey,
  CertificateTable,
  compilingCertificates,
  type SecretCertificate,
} from "./certificates.ts";
import { compileRoutes, findingServed, type RouteProblem } from "./compile-routes.ts";
import { type ClassOptions, IngressClasses } from "./ingress-classes.ts";
import type { Route } from "./route.ts";
import { RouteTable } from "./route-table.ts";

/**
 * The wait that batches simultaneous changes (an apply, a relist); too short for users to notice.
 */
const RELOAD_DELAY_MS = 20;

/** The routes in force, for publishers. */
export interface ActiveRoutes {
  readonly ingresses: readonly Ingress[];
  readonly problems: readonly (Omit<RouteProblem, "reason"> & { readonly reason: string })[];
  readonly secrets: readonly SecretCertificate[];
}

interface Compiled {
  readonly table: RouteTable<Route>;
  readonly certificates: CertificateTable;
  readonly active: ActiveRoutes;
}

interface RouteControllerOptions {
  readonly cluster: Cluster;
  readonly classes: ClassOptions;
  readonly hostOwnership: HostOwnership;
  /**
   * Work that follows once the routes of these Ingresses are in force on every listener, in steps.
   */
  onActive(active: ActiveRoutes): Generator<void, void>;
}

const RELEVANT: ReadonlySet<string> = new Set(["Ingress", "IngressClass", "Namespace", "Secret"]);

/**
 * Keeps the routes equal to the cluster's Ingresses. Compiles a new table in slices and swaps it in
 * at once: no request sees half a change or waits for it.
 */
export class RouteController {
  readonly #options: RouteControllerOptions;
  readonly #unsubscribe: () => void;
  #table = new RouteTable<Route>();
  #certificates = new CertificateTable();
  #timer: NodeJS.Timeout | undefined;
  #compiling: Promise<void> | undefined;
  #isStale = false;
  #isStopped = false;

  private constructor(options: RouteControllerOptions) {
    this.#options = options;
    this.#unsubscribe = options.cluster.subscribe((change) => this.#changed(change));
  }

  /** Resolves once the first routes are in force. */
  static async start(options: RouteControllerOptions): Promise<RouteController> {
    const controller = new RouteController(options);
    await controller.#reload();
    return controller;
  }

  get table(): RouteTable<Route> {
    return this.#table;
  }

  /** A server name's certificates; empty if no Secret has one. */
  certificatesFor(serverName: string): readonly CertificateAndKey[] {
    return this.#certificates.certificatesFor(serverName);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#unsubscribe();
    clearTimeout(this.#timer);
    await this.#compiling;
  }

  #changed({ object, previous }: ClusterChange): void {
    // A reload is already due, so the remaining checks would be wasted on each of 10,000 changes.
    if (this.#isStale || !RELEVANT.has(object.kind) || isStatusOnly(object, previous)) return;
    this.#schedule();
  }

  #schedule(): void {
    this.#isStale = true;
    if (this.#timer !== undefined || this.#compiling !== undefined || this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#reload();
    }, RELOAD_DELAY_MS);
  }

  async #reload(): Promise<void> {
    this.#isStale = false;
    this.#compiling = this.#compile();
    await this.#compiling;
    this.#compiling = undefined;
    // Changes during the compilation are not in the table yet.
    if (this.#isStale) this.#schedule();
  }

  async #compile(): Promise<void> {
    const { table, certificates, active } = await inSlices(this.#compilation());
    if (this.#isStopped) return;
    this.#table = table;
    this.#certificates = certificates;
    await inSlices(this.#options.onActive(active));
  }

  /** Nothing of the new table is in force before all of it is compiled. */
  *#compilation(): Generator<void, Compiled> {
    const { cluster, classes, hostOwnership } = this.#options;
    const owned = new IngressClasses(cluster.list("IngressClass"), classes);
    const all = cluster.list("Ingress");
    yield;
    const served = yield* findingServed(all, owned, (name) => cluster.getNamespace(name));
    const { table, ingresses, problems: ofRoutes } = yield* compileRoutes(served, hostOwnership);
    const secretOf = (namespace: string, name: string) => cluster.get("Secret", namespace, name);
    const certificates = yield* compilingCertificates(served, secretOf, hostOwnership);
    const problems: ActiveRoutes["problems"][number][] = [...ofRoutes];
    for (const problem of certificates.problems) problems.push({ ...problem, reason: "InvalidCertificate" });
    for (const origin of all) {
      const [conflict, ignored] = [owned.conflictOf(origin), owned.ignoredParametersOf(origin)];
      if (conflict !== undefined) problems.push({ origin, reason: "AmbiguousClass", message: conflict });
      if (ignored !== undefined) problems.push({ origin, reason: "IgnoredParameters", message: ignored });
      yield;
    }
    const { secrets } = certificates;
    return { table, certificates: certificates.table, active: { ingresses, problems, secrets } };
  }
}

/**
 * Our own status writes must not cause a compilation. Spec and annotations keep their identity
 * unless they changed.
 */
function isStatusOnly(object: ClusterChange["object"], previous: ClusterChange["previous"]): boolean {
  if (object.kind !== "Ingress" || previous?.kind !== "Ingress") return false;
  return (
    object.metadata.deletionTimestamp === previous.metadata.deletionTimestamp &&
    JSON.stringify([object.spec, object.metadata.annotations]) ===
      JSON.stringify([previous.spec, previous.metadata.annotations])
  );
}
