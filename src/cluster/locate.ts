import type { Node, NodeAddress, Pod, PodSpec } from "../api/objects.ts";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import { PUBLISHED_FEATURES_ANNOTATION, STREAMING_ANNOTATION } from "../config/sections/kubelet.ts";
import type { Cluster } from "./cluster.ts";

interface StreamingLocation {
  readonly subresource: "exec" | "attach" | "portforward";
  readonly namespace: string;
  readonly pod: string;
  readonly container?: string | undefined;
}

export interface LocateOptions {
  /**
   * Types of node addresses in order of preference; kube-apiserver's
   * `--kubelet-preferred-address-types`.
   */
  readonly preferredAddressTypes: readonly string[];
  /** The port of a node that reports none. */
  readonly defaultKubeletPort: number;
}

/** The destination of a streaming session. */
export interface StreamingTarget {
  readonly namespace: string;
  readonly pod: string;
  /** Undefined if a manifest gives none. */
  readonly podUid?: string | undefined;
  /** Undefined for port-forward, which addresses only pods. */
  readonly container: string | undefined;
  /** The container is an ephemeral one, as `kubectl debug` adds. */
  readonly isEphemeral?: boolean;
  readonly node: NodeEndpoint;
}

export interface NodeEndpoint {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** Declared by the kubelet, and by a Sluice in front of it. */
  readonly declaredFeatures: readonly string[];
  /** The unchecked value of the annotation `sluice.dev/streaming`. */
  readonly streaming: string | undefined;
  /** Changes with the boot, the kubelet, its runtime, features and address. */
  readonly incarnation: string;
}

/**
 * Finds pod, container, node, address and port in kube-apiserver's order. Throws StatusError with
 * kube-apiserver's messages. An unknown node is an error, too: it never counts as an old kubelet.
 */
export function locate(
  cluster: Pick<Cluster, "getPod" | "getNode">,
  request: StreamingLocation,
  options: LocateOptions,
): StreamingTarget {
  const { namespace, pod: podName, subresource } = request;
  const pod = cluster.getPod(namespace, podName);
  if (pod === undefined) throw WIRE_ERRORS["pod-unknown"].streaming({ name: podName });

  const container = subresource === "portforward" ? undefined : chooseContainer(pod, request.container);
  const nodeName = pod.spec.nodeName ?? "";
  if (nodeName === "") throw WIRE_ERRORS["pod-unscheduled"].streaming({ pod: podName });

  const node = cluster.getNode(nodeName);
  if (node === undefined) throw WIRE_ERRORS["node-unknown"].streaming({ name: nodeName });
  return {
    namespace,
    pod: podName,
    podUid: pod.metadata.uid,
    container,
    isEphemeral: pod.spec.ephemeralContainers?.some(({ name }) => name === container) === true,
    node: nodeEndpointOf(node, options),
  };
}

/** The API server treats an empty name as absent. */
function chooseContainer({ metadata, spec }: Pod, wanted = ""): string {
  if (wanted !== "") {
    if (allContainerNames(spec).includes(wanted)) return wanted;
    throw WIRE_ERRORS["container-unknown"].streaming({ container: wanted, pod: metadata.name });
  }
  // Only regular containers decide whether a name is required, but the message lists all
  // containers.
  const [only, ...others] = spec.containers;
  if (only !== undefined && others.length === 0) return only.name;
  const containers = only === undefined ? "" : allContainerNames(spec).join(" ");
  throw WIRE_ERRORS["container-not-chosen"].streaming({ pod: metadata.name, containers });
}

function allContainerNames({ initContainers = [], containers, ephemeralContainers = [] }: PodSpec): string[] {
  return [...initContainers, ...containers, ...ephemeralContainers].map(({ name }) => name);
}

/**
 * A node's kubelet endpoint and declarations. Throws StatusError 500 if the node has no address of
 * a preferred type.
 */
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

/**
 * Features that are read from a node's annotation; Sluice publishes far fewer, but other programs
 * may write it. Past it features are ignored.
 */
const MAX_PUBLISHED_FEATURES = 32;

/**
 * The features in a node's annotation. They are not in `status.declaredFeatures`, because kubelets
 * since 1.36 own it and remove others' additions.
 */
export function publishedFeaturesOf({ annotations }: Node["metadata"]): readonly string[] {
  const text = annotations?.[PUBLISHED_FEATURES_ANNOTATION] ?? "";
  return text === "" ? [] : text.split(",", MAX_PUBLISHED_FEATURES);
}

/**
 * The union of both lists, sorted and without duplicates, as the API requires; `some` itself if
 * nothing is added.
 */
export function unionOf(some: readonly string[], others: readonly string[]): readonly string[] {
  return others.length === 0 ? some : [...new Set([...some, ...others])].sort();
}

/** The node's first preferred type wins, whatever the order of its addresses. */
function preferredAddress(addresses: readonly NodeAddress[], preferredTypes: readonly string[]): string {
  for (const preferred of preferredTypes) {
    const found = addresses.find(({ type }) => type === preferred);
    if (found) return found.address;
  }
  const known = addresses.map(({ type, address }) => `{${type} ${address}}`).join(" ");
  throw WIRE_ERRORS["node-without-address"].streaming({ known });
}
