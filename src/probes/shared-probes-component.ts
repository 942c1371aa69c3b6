import { isDeepStrictEqual } from "node:util";
import type { Pod, PodStatus } from "../api/objects.ts";
import type { ClusterStore } from "../cluster/cluster-store.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";
import { type Component, Started } from "../lifecycle/component.ts";
import type { KnownNodes } from "../nodes/known-nodes.ts";
import { type BuiltProbes, buildProbes, type ProbeParts } from "./component.ts";
import { publishToStore } from "./pod-probes-component.ts";
import { isLasting, keyOfFinding, type ProbeUpdate } from "./probe-update.ts";

export interface RunningProbes extends BuiltProbes, Component {
  /** Applies the results of the process that probes for all. */
  learn(findings: readonly ProbeUpdate[]): void;
  /**
   * This process probes for all from now on. With `isSuccessor` the earlier process's results count
   * until there are new verdicts.
   */
  begin(isSuccessor: boolean): Promise<void>;
  stop(): Promise<void>;
}

/** Starts the probes of a single process, or of one of several processes that `share` their results. */
export async function startProbes(
  configuration: GatewayConfiguration,
  parts: ProbeParts,
  share: ((findings: readonly ProbeUpdate[]) => void) | undefined,
): Promise<RunningProbes> {
  // With several processes, the one that probes continues while it drains, because no other process
  // knows yet that it will end.
  if (share !== undefined) return buildSharedProbes(configuration, parts, share);
  const probes = await buildProbes(configuration, parts);
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopped ??= Promise.resolve(probes.stop());
    return stopped;
  };
  return { ...probes, learn: () => {}, begin: async () => {}, drain: stop, stop };
}

/**
 * Probes in one of several processes: uses another process's results until its turn, then probes
 * and sends its own to the others.
 */
function buildSharedProbes(
  configuration: GatewayConfiguration,
  parts: ProbeParts,
  share: (findings: readonly ProbeUpdate[]) => void,
): RunningProbes {
  const { store, nodes, publishStatus, logger } = parts;
  const learned = new RemoteProbeResults(store, nodes);
  const started = new Started();
  started.add(learned, (it) => it.stop());
  let own: BuiltProbes | undefined;
  let isStopped = false;
  return {
    isGatewayHealthy: (name) => own?.isGatewayHealthy(name) ?? !learned.isDead("gateway", name),
    listProbes: () => own?.listProbes() ?? [],
    learn: (findings) => learned.learn(findings),
    begin: async (isSuccessor) => {
      if (isStopped) return;
      logger.info({ isSuccessor }, "this process is the prober");
      learned.stop();
      own = await buildProbes(configuration, {
        ...parts,
        isSuccessor,
        share,
        wasHealthy: (kind, name) => !learned.isDead(kind, name),
      });
      started.add(own, (it) => it.stop());
      // A live cluster notifies every process by itself.
      if (publishStatus === undefined) {
        const ours = new Set(configuration.podProbes.nodeNames);
        const isOurs = ({ spec }: Pod): boolean => ours.has(spec.nodeName ?? "");
        started.add(sharePodStatuses(store, isOurs, learned.pods, share), (unsubscribe) => unsubscribe());
      }
      if (isStopped) await started.stop();
    },
    stop: async () => {
      isStopped = true;
      await started.stop();
    },
  };
}

type PodFinding = Extract<ProbeUpdate, { readonly kind: "pod" }>;

/** Applies another process's results to this one's store and nodes. */
class RemoteProbeResults {
  readonly #store: ClusterStore;
  readonly #nodes: Pick<KnownNodes, "reportProbe">;
  readonly #pods = new Map<string, PodFinding>();
  readonly #dead = new Set<string>();
  readonly #unsubscribe: () => void;

  constructor(store: ClusterStore, nodes: Pick<KnownNodes, "reportProbe">) {
    this.#store = store;
    this.#nodes = nodes;
    // Reading the manifests again overwrites the statuses.
    this.#unsubscribe = store.subscribe(({ object }) => {
      if (object.kind !== "Pod") return;
      const { namespace = "", name } = object.metadata;
      const known = this.#pods.get(keyOfFinding({ kind: "pod", namespace, name, status: undefined }));
      // A store listener must not change the store.
      if (known !== undefined && !isDeepStrictEqual(known.status, object.status)) {
        queueMicrotask(() => this.#applyAgain(known));
      }
    });
  }

  learn(findings: readonly ProbeUpdate[]): void {
    for (const finding of findings) {
      const key = keyOfFinding(finding);
      if (finding.kind === "pod") {
        if (isLasting(finding)) this.#pods.set(key, finding);
        else this.#pods.delete(key);
        this.#apply(finding);
        continue;
      }
      if (isLasting(finding)) this.#dead.add(key);
      else this.#dead.delete(key);
      if (finding.kind === "node") this.#nodes.reportProbe(finding.name, finding.isHealthy, finding.reason);
    }
  }

  isDead(kind: "node" | "gateway", name: string): boolean {
    return this.#dead.has(`${kind}/${name}`);
  }

  get pods(): readonly PodFinding[] {
    return [...this.#pods.values()];
  }

  /** Writes no more results, but keeps them. */
  stop(): void {
    this.#unsubscribe();
  }

  #applyAgain(finding: PodFinding): void {
    if (this.#pods.get(keyOfFinding(finding)) === finding) this.#apply(finding);
  }

  #apply({ namespace, name, status }: PodFinding): void {
    const pod = this.#store.getPod(namespace, name);
    if (pod === undefined || status === undefined) return;
    publishToStore(this.#store, pod, status);
  }
}

/** Sends our pods' statuses from the store: all at first, then each turn's changes. */
function sharePodStatuses(
  store: ClusterStore,
  isOurs: (pod: Pod) => boolean,
  known: readonly PodFinding[],
  share: (findings: readonly ProbeUpdate[]) => void,
): () => void {
  const told = new Map<string, PodStatus>();
  const changed = new Map<string, Omit<PodFinding, "status">>();
  const tell = (): void => {
    const findings: PodFinding[] = [];
    for (const pod of changed.values()) {
      const found = store.getPod(pod.namespace, pod.name);
      const status = found !== undefined && isOurs(found) ? found.status : undefined;
      const finding = { ...pod, status };
      const key = keyOfFinding(finding);
      if (isDeepStrictEqual(status, told.get(key))) continue;
      if (status === undefined) told.delete(key);
      else told.set(key, status);
      findings.push(finding);
    }
    changed.clear();
    if (findings.length > 0) share(findings);
  };
  const heard = (pod: Omit<PodFinding, "status">): void => {
    // By then the probes have written the change's results to the store.
    if (changed.size === 0) setImmediate(tell);
    changed.set(keyOfFinding({ ...pod, status: undefined }), pod);
  };
  const heardOf = ({ metadata: { namespace = "", name } }: Pod): void =>
    heard({ kind: "pod", namespace, name });
  for (const { status, ...pod } of known) {
    if (status !== undefined) told.set(keyOfFinding({ ...pod, status }), status);
    heard(pod);
  }
  for (const pod of store.listPods()) if (isOurs(pod)) heardOf(pod);
  return store.subscribe(({ object }) => {
    if (object.kind === "Pod" && isOurs(object)) heardOf(object);
  });
}
