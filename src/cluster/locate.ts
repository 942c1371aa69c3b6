import type { Node, NodeAddress, Pod, PodSpec } from "../api/objects.ts";
import { badRequest, genericError, notFound } from "../api/status.ts";
import { PUBLISHED_FEATURES_ANNOTATION, STREAMING_ANNOTATION } from "../config/sections/node-streaming.ts";
import type { Cluster } from "./cluster.ts";

export interface StreamingLocation {
  readonly subresource: "exec" | "attach" | "portforward";
  readonly namespace: string;
  readonly pod: string;
  readonly container?: string | undefined;
}

export interface LocateOptions {
  /** Types of node addresses in the order in which they are tried; kube-apiserver's `--kubelet-preferred-address-types`. */
  readonly preferredAddressTypes: readonly string[];
  /** The port of a node that names none. */
  readonly defaultKubeletPort: number;
}

/** kube-apiserver's own defaults. */
export const defaultLocateOptions: LocateOptions = {
  preferredAddressTypes: ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"],
  defaultKubeletPort: 10_250,
};

/** Where a streaming session must go. */
export interface StreamingTarget {
  readonly namespace: string;
  readonly pod: string;
  /** Absent in manifests that give none. */
  readonly podUid?: string | undefined;
  /** Undefined for port-forward, which knows pods only. */
  readonly container: string | undefined;
  readonly node: NodeEndpoint;
}

export interface NodeEndpoint {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** By its kubelet, and by a Sluice in front of that. */
  readonly declaredFeatures: readonly string[];
  /** What the annotation `sluice.dev/streaming` says, whatever that is. */
  readonly streaming: string | undefined;
  /** The same as long as what answers there is the same: changes with the boot, the kubelet, its runtime, features and address. */
  readonly incarnation: string;
}

/**
 * Finds pod, container, node, address and port in kube-apiserver's order of checks. Throws StatusError with its texts, also for an
 * unknown node: it is never taken for an old one.
 */
export function locate(
  cluster: Pick<Cluster, "getPod" | "getNode">,
  request: StreamingLocation,
  options: LocateOptions,
): StreamingTarget {
  const { namespace, pod: podName, subresource } = request;
  const pod = cluster.getPod(namespace, podName);
  if (pod === undefined) throw notFound("pods", podName);

  const container = subresource === "portforward" ? undefined : chooseContainer(pod, request.container);
  const nodeName = pod.spec.nodeName ?? "";
  if (nodeName === "") throw badRequest(`pod ${podName} does not have a host assigned`);

  const node = cluster.getNode(nodeName);
  if (node === undefined) throw notFound("nodes", nodeName);
  return {
    namespace,
    pod: podName,
    podUid: pod.metadata.uid,
    container,
    node: nodeEndpointOf(node, options),
  };
}

/** An absent and an empty name are the same to the API server. */
function chooseContainer({ metadata, spec }: Pod, wanted = ""): string {
  if (wanted !== "") {
    if (allContainerNames(spec).includes(wanted)) return wanted;
    throw badRequest(`container ${wanted} is not valid for pod ${metadata.name}`);
  }
  // Only regular containers decide whether a name is needed, yet all are offered.
  const [only, ...others] = spec.containers;
  const question = `a container name must be specified for pod ${metadata.name}`;
  if (only === undefined) throw badRequest(question);
  if (others.length > 0)
    throw badRequest(`${question}, choose one of: [${allContainerNames(spec).join(" ")}]`);
  return only.name;
}

function allContainerNames({ initContainers = [], containers, ephemeralContainers = [] }: PodSpec): string[] {
  return [...initContainers, ...containers, ...ephemeralContainers].map(({ name }) => name);
}

/** Where a node's kubelet is, and what it says of itself. Throws StatusError 500 when it has no address of a preferred type. */
export function nodeEndpointOf({ metadata, status = {} }: Node, options: LocateOptions): NodeEndpoint {
  const reportedPort = status.daemonEndpoints?.kubeletEndpoint?.Port ?? 0;
  const host = preferredAddress(status.addresses ?? [], options.preferredAddressTypes);
  const port = reportedPort > 0 ? reportedPort : options.defaultKubeletPort;
  const { nodeInfo = {} } = status;
  const declaredFeatures = unionOf(status.declaredFeatures ?? [], publishedFeaturesOf(metadata));
  const { bootID = "", kubeletVersion = "", containerRuntimeVersion = "" } = nodeInfo;
  return {
    name: metadata.name,
    host,
    port,
    declaredFeatures,
    streaming: metadata.annotations?.[STREAMING_ANNOTATION],
    incarnation: [
      metadata.uid ?? "",
      host,
      port,
      bootID,
      kubeletVersion,
      containerRuntimeVersion,
      ...declaredFeatures,
    ].join("\n"),
  };
}

/** Of one node's annotation. Sluice has far fewer, and other programs may write annotations, too. */
export const MAX_PUBLISHED_FEATURES = 32;

/** What a node's annotation holds. Kubelets of 1.36 and later own `status.declaredFeatures`, and take what others add to it away. */
export function publishedFeaturesOf({ annotations }: Node["metadata"]): readonly string[] {
  const text = annotations?.[PUBLISHED_FEATURES_ANNOTATION] ?? "";
  return text === "" ? [] : text.split(",", MAX_PUBLISHED_FEATURES);
}

/** Sorted and without doubles, as the API wants it; as it was where nothing is added. */
export function unionOf(some: readonly string[], others: readonly string[]): readonly string[] {
  return others.length === 0 ? some : [...new Set([...some, ...others])].sort();
}

/** The first preferred type that the node has at all wins, whatever the order of its addresses. */
function preferredAddress(addresses: readonly NodeAddress[], preferredTypes: readonly string[]): string {
  for (const preferred of preferredTypes) {
    const found = addresses.find(({ type }) => type === preferred);
    if (found) return found.address;
  }
  const known = addresses.map(({ type, address }) => `{${type} ${address}}`).join(" ");
  throw genericError(500, `no preferred addresses found; known addresses: [${known}]`);
}
