import type { Ingress } from "../api/networking-objects.ts";
import type { Cluster, ClusterChange } from "../cluster/cluster.ts";
import { inSlices } from "../cluster/slices.ts";
import type { HostOwnership } from "../config/sections/ingress-listener.ts";
import {
  type CertificateAndKey,
  CertificateTable,
  compileCertificates,
  type SecretCertificate,
} from "./certificates.ts";
import { compileRoutes, type RouteProblem, servedIngresses } from "./compile-routes.ts";
import { type ClassOptions, IngressClasses } from "./ingress-classes.ts";
import type { RouteBackend } from "./route-backend.ts";
import { RouteTable } from "./route-table.ts";

/** Several changes at once (an apply, a relist) are compiled once; short enough to feel immediate. */
export const RELOAD_DELAY_MS = 20;

/** The state in force, for publishers. */
export interface ActiveRoutes {
  readonly ingresses: readonly Ingress[];
  readonly problems: readonly (Omit<RouteProblem, "reason"> & { readonly reason: string })[];
  readonly secrets: readonly SecretCertificate[];
}

export interface RouteControllerOptions {
  readonly cluster: Cluster;
  readonly classes: ClassOptions;
  readonly hostOwnership: HostOwnership;
  /** Routes of these Ingresses are served from now on, on every listener. */
  onActive(active: ActiveRoutes): void;
}

const RELEVANT: ReadonlySet<string> = new Set(["Ingress", "IngressClass", "Namespace", "Secret"]);

/**
 * Keeps the routes equal to the cluster's Ingresses. A change compiles another table in slices and replaces the old one at once: no
 * request sees half a change or waits for it.
 */
export class RouteController {
  readonly #options: RouteControllerOptions;
  readonly #unsubscribe: () => void;
  #table = new RouteTable<RouteBackend>();
  #certificates = new CertificateTable();
  #timer: NodeJS.Timeout | undefined;
  #compiling: Promise<void> | undefined;
  #isStale = false;
  #isStopped = false;

  private constructor(options: RouteControllerOptions) {
    this.#options = options;
    this.#unsubscribe = options.cluster.subscribe((change) => this.#changed(change));
  }

  /** Resolves when the first routes are in force. */
  static async start(options: RouteControllerOptions): Promise<RouteController> {
    const controller = new RouteController(options);
    await controller.#reload();
    return controller;
  }

  get routes(): RouteTable<RouteBackend> {
    return this.#table;
  }

  /** The certificates of a server name; empty: no Secret has one. */
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
    // With a reload due already, one more change need not be looked at: of 10,000 that would take its time.
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
    // What changed meanwhile is not in the table yet.
    if (this.#isStale) this.#schedule();
  }

  async #compile(): Promise<void> {
    const { cluster, classes, hostOwnership, onActive } = this.#options;
    const owned = new IngressClasses(cluster.list("IngressClass"), classes);
    const served = servedIngresses(cluster.list("Ingress"), owned, (name) => cluster.getNamespace(name));
    const compiled = await inSlices(compileRoutes(served, hostOwnership));
    const certificates = compileCertificates(
      served,
      (namespace, name) => cluster.get("Secret", namespace, name),
      hostOwnership,
    );
    if (this.#isStopped) return;
    this.#table = compiled.table;
    this.#certificates = certificates.table;
    const ofClasses = cluster.list("Ingress").flatMap((ingress) => {
      const [conflict, ignored] = [owned.conflictOf(ingress), owned.ignoredParametersOf(ingress)];
      return [
        ...(conflict === undefined ? [] : [{ ingress, reason: "AmbiguousClass", message: conflict }]),
        ...(ignored === undefined ? [] : [{ ingress, reason: "IgnoredParameters", message: ignored }]),
      ];
    });
    const tls = certificates.problems.map((problem) => ({ ...problem, reason: "InvalidCertificate" }));
    const problems = [...compiled.problems, ...tls, ...ofClasses];
    onActive({ ingresses: compiled.ingresses, problems, secrets: certificates.secrets });
  }
}

/** Our own publishing of addresses must not make us compile again. Spec and annotations are the same objects only when nothing of them changed. */
function isStatusOnly(object: ClusterChange["object"], previous: ClusterChange["previous"]): boolean {
  if (object.kind !== "Ingress" || previous?.kind !== "Ingress") return false;
  return (
    object.metadata.deletionTimestamp === previous.metadata.deletionTimestamp &&
    JSON.stringify([object.spec, object.metadata.annotations]) ===
      JSON.stringify([previous.spec, previous.metadata.annotations])
  );
}
