import { setTimeout as delay } from "node:timers/promises";
import { ConnectError } from "@sluice/client/internal/http/upstream/connect-error";
import type { Target } from "@sluice/client/internal/target";
import { getShaped, listOf, object, optional, type Shape } from "./answer-shape.ts";
import type { ClientConnection } from "./connection.ts";
import {
  type ContainerObject,
  type PodObject,
  podShape,
  serviceShape,
  workloadShape,
} from "./pod-objects.ts";

interface SelectorObject {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

const podListShape: Shape = object({ items: optional(listOf(podShape)) });

interface WorkloadObject {
  readonly spec: { readonly selector?: SelectorObject & Readonly<Record<string, unknown>> };
}

interface ServiceObject {
  readonly spec: {
    readonly clusterIP?: string;
    readonly selector?: Readonly<Record<string, string>>;
    readonly ports?: readonly {
      readonly name?: string;
      readonly port: number;
      readonly targetPort?: number | string;
    }[];
  };
}

const A_POD = { what: "a pod", shape: podShape };
const PODS = { what: "a list of pods", shape: podListShape };
const A_SERVICE = { what: "a service", shape: serviceShape };
const A_WORKLOAD = { what: "an object with a selector", shape: workloadShape };

/** How often the server is asked for pods until there is one. */
const POLL_MS = 500;

/** The API path of each workload, by every name that kubectl accepts for it. */
const WORKLOADS: Readonly<Record<string, string>> = {
  ...named("apis/apps/v1", "deployments", "deployment", "deploy"),
  ...named("apis/apps/v1", "replicasets", "replicaset", "rs"),
  ...named("apis/apps/v1", "statefulsets", "statefulset", "sts"),
  ...named("apis/apps/v1", "daemonsets", "daemonset", "ds"),
  ...named("apis/batch/v1", "jobs", "job"),
  ...named("api/v1", "replicationcontrollers", "replicationcontroller", "rc"),
};

/** `deployment.apps/web` is how kubectl prints a name. */
function named(path: string, plural: string, ...names: readonly string[]): Record<string, string> {
  const [, group] = /^apis\/(.+)\//.exec(path) ?? [];
  const all = [plural, ...names].flatMap((name) =>
    group === undefined ? [name] : [name, `${name}.${group}`],
  );
  return Object.fromEntries(all.map((name) => [name, `/${path}/namespaces/{ns}/${plural}`]));
}

function containerPort(pod: PodObject, name: string): number | undefined {
  const ports = (pod.spec?.containers ?? []).flatMap(({ ports }) => ports ?? []);
  return ports.find((port) => port.name === name)?.containerPort;
}

/** Resolves a TYPE/NAME to the pods that may serve it, and to the port of these pods. */
export class PodSource {
  readonly #target: Target;
  readonly #timeoutMs: number;
  readonly #namespace: string;
  readonly #type: string;
  readonly #name: string;

  constructor(
    { target, namespace, requestTimeoutMs }: ClientConnection,
    { type, name }: { type: string; name: string },
  ) {
    this.#target = target;
    this.#timeoutMs = requestTimeoutMs;
    this.#namespace = namespace;
    this.#type = type;
    this.#name = name;
  }

  /** Throws ConnectError, and Error in kubectl's words for a type that selects no pods. */
  async pods(signal?: AbortSignal): Promise<readonly PodObject[]> {
    if (this.isOnePod)
      return [await this.#get<PodObject>(this.#path("/api/v1/namespaces/{ns}/pods"), A_POD, signal)];
    const selector = this.#isService
      ? serviceSelector(this.#name, await this.#service(signal))
      : await this.#workloadSelector(signal);
    const query = new URLSearchParams({ labelSelector: selector });
    const list = `/api/v1/namespaces/${encodeURIComponent(this.#namespace)}/pods?${query}`;
    return (await this.#get<{ items?: PodObject[] }>(list, PODS, signal)).items ?? [];
  }

  /** Maps the user's port to the pod's. For a service, the user names the service's port. */
  async portOf(pod: PodObject, port: number, signal?: AbortSignal): Promise<number> {
    if (!this.#isService) return port;
    const service = await this.#service(signal);
    const servicePort = service.spec.ports?.find((candidate) => candidate.port === port);
    if (servicePort === undefined)
      throw new Error(`Service ${this.#name} does not have a service port ${port}`);
    // A headless service's port is the pod's.
    if (service.spec.clusterIP === "None") return port;
    const targetPort = servicePort.targetPort ?? port;
    if (typeof targetPort === "number") return targetPort;
    const found = containerPort(pod, targetPort);
    if (found !== undefined) return found;
    throw new Error(`Pod '${pod.metadata.name}' does not have a named port '${targetPort}'`);
  }

  /** The number of a named port: the service's own, or that of the first pod that has the port. */
  async portNamed(name: string): Promise<number> {
    if (this.#isService) {
      const { spec } = await this.#service();
      const found = spec.ports?.find((port) => port.name === name);
      if (found !== undefined) return found.port;
      throw new Error(`Service '${this.#name}' does not have a named port '${name}'`);
    }
    const pods = await this.pods();
    const found = pods.map((pod) => containerPort(pod, name)).find((port) => port !== undefined);
    if (found !== undefined) return found;
    throw new Error(`Pod '${pods[0]?.metadata.name ?? this.#name}' does not have a named port '${name}'`);
  }

  /** True for one pod named by the user, false for a selector. */
  get isOnePod(): boolean {
    return this.#type === "pod" || this.#type === "pods" || this.#type === "po";
  }

  get #isService(): boolean {
    return this.#type === "service" || this.#type === "services" || this.#type === "svc";
  }

  #service(signal?: AbortSignal): Promise<ServiceObject> {
    return this.#get(this.#path("/api/v1/namespaces/{ns}/services"), A_SERVICE, signal);
  }

  async #workloadSelector(signal?: AbortSignal): Promise<string> {
    const collection = Object.hasOwn(WORKLOADS, this.#type) ? WORKLOADS[this.#type] : undefined;
    if (collection === undefined) throw new Error(`the server doesn't have a resource type "${this.#type}"`);
    const { spec } = await this.#get<WorkloadObject>(this.#path(collection), A_WORKLOAD, signal);
    const { selector } = spec;
    // A replication controller's selector is a plain map.
    const isMap = collection.endsWith("replicationcontrollers");
    return labelSelectorText(
      isMap ? { matchLabels: selector as Record<string, string> | undefined } : (selector ?? {}),
    );
  }

  #get<T>(path: string, wanted: { what: string; shape: Shape }, signal?: AbortSignal): Promise<T> {
    const options = { ...wanted, timeoutMs: this.#timeoutMs, ...(signal && { signal }) };
    return getShaped<T>(this.#target, path, options);
  }

  #path(collection: string): string {
    return `${collection.replace("{ns}", encodeURIComponent(this.#namespace))}/${encodeURIComponent(this.#name)}`;
  }
}

/** The pods with these labels. Throws ConnectError. */
export async function podsWith(
  { target, namespace, requestTimeoutMs }: ClientConnection,
  labelSelector: string,
): Promise<readonly PodObject[]> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods?${new URLSearchParams({ labelSelector })}`;
  const { items } = await getShaped<{ items?: readonly PodObject[] }>(target, path, {
    ...PODS,
    timeoutMs: requestTimeoutMs,
  });
  return items ?? [];
}

/**
 * Asks the server until there is a pod, for at most `timeoutMs`; then throws Error in kubectl's
 * words.
 */
export async function podsWithin(source: PodSource, timeoutMs: number): Promise<readonly PodObject[]> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const pods = await source.pods();
    if (pods.length > 0) return pods;
    if (performance.now() + POLL_MS > deadlineMs) throw new Error("timed out waiting for the condition");
    await delay(POLL_MS);
  }
}

/** The pods that can serve now. A selected pod must be ready; a pod named by the user must only run. */
export function usablePods(pods: readonly PodObject[], isOnePod: boolean): readonly PodObject[] {
  return pods.filter(({ metadata, status }) => {
    if (status?.phase !== "Running") return false;
    if (isOnePod) return true;
    const isUnready = status.conditions?.some(
      ({ type, status: value }) => type === "Ready" && value === "False",
    );
    return !metadata.deletionTimestamp && isUnready !== true;
  });
}

/** kubectl's choice of a container: the one the user names, else the annotated one, else the first. */
export function containerOf(
  pod: PodObject,
  name: string | undefined,
): { container: ContainerObject; notice?: string } {
  const containers = pod.spec?.containers ?? [];
  const initContainers = pod.spec?.initContainers ?? [];
  if (name !== undefined) {
    const named = [...containers, ...initContainers].find((container) => container.name === name);
    if (named !== undefined) return { container: named };
    throw new ConnectError("http", `container ${name} not found in pod ${pod.metadata.name}`);
  }
  const annotated = pod.metadata.annotations?.["kubectl.kubernetes.io/default-container"];
  const marked = containers.find((container) => container.name === annotated);
  if (marked !== undefined) return { container: marked };
  const [first] = containers;
  if (first === undefined) throw new ConnectError("http", `pod ${pod.metadata.name} has no container`);
  const all = [
    ...containers.map((container) => container.name),
    ...initContainers.map((container) => `${container.name} (init)`),
  ];
  return {
    container: first,
    ...(all.length > 1 && { notice: `Defaulted container "${first.name}" out of: ${all.join(", ")}` }),
  };
}

function serviceSelector(name: string, { spec }: ServiceObject): string {
  if (!spec.selector || Object.keys(spec.selector).length === 0) {
    throw new Error(`invalid service '${name}': Service is defined without a selector`);
  }
  return labelSelectorText({ matchLabels: spec.selector });
}

function labelSelectorText({ matchLabels, matchExpressions }: SelectorObject): string {
  const labels = Object.entries(matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  const expressions = (matchExpressions ?? []).map(({ key, operator, values }) => {
    if (operator === "Exists") return key;
    if (operator === "DoesNotExist") return `!${key}`;
    return `${key} ${operator === "NotIn" ? "notin" : "in"} (${(values ?? []).join(",")})`;
  });
  return [...labels, ...expressions].join(",");
}
