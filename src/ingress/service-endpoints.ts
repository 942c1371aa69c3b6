import type { EndpointSlice, Service } from "../api/service-objects.ts";

/** Where one port of a Service can be reached, and how. */
export interface ServiceEndpoints {
  /** host:port pairs, distinct; empty: no endpoint is ready. */
  readonly addresses: readonly EndpointAddress[];
  /** The Service's appProtocol, such as `kubernetes.io/h2c` or `kubernetes.io/ws`. */
  readonly appProtocol: string | undefined;
}

export interface EndpointAddress {
  readonly host: string;
  readonly port: number;
  /** Of the pod there; undefined where the slice names none. */
  readonly podUid: string | undefined;
}

/** Why a Service has no endpoints to offer. */
export type EndpointProblem = "no-service" | "no-such-port" | "external-name" | "no-authority";

/**
 * The endpoints of a Service's port, by number or name: the ready ones, or without any those that serve while terminating. Slices name
 * ports as the Service does, or not at all.
 */
export function endpointsOf(
  service: Service | undefined,
  slices: readonly EndpointSlice[],
  wanted: number | string,
): ServiceEndpoints | EndpointProblem {
  if (service === undefined) return "no-service";
  // An external name can resolve to anything, the metadata service included.
  if (service.spec?.type === "ExternalName") return "external-name";
  const port = service.spec?.ports?.find(
    ({ name, port: number, protocol }) =>
      isTcp(protocol) && (typeof wanted === "number" ? number === wanted : name === wanted),
  );
  if (port === undefined) return "no-such-port";
  const portName = port.name ?? "";
  const ready = addressesOf(slices, portName, ({ ready = true }) => ready);
  const addresses =
    ready.length > 0
      ? ready
      : addressesOf(slices, portName, ({ serving = true, terminating = false }) => serving && terminating);
  return { addresses, appProtocol: port.appProtocol };
}

/** A Service may have a UDP port of the same number, as DNS and HTTP/3 do. */
function isTcp(protocol: string | undefined): boolean {
  return (protocol ?? "TCP") === "TCP";
}

type Conditions = NonNullable<NonNullable<EndpointSlice["endpoints"]>[number]["conditions"]>;

function addressesOf(
  slices: readonly EndpointSlice[],
  portName: string,
  isWanted: (conditions: Conditions) => boolean,
): EndpointAddress[] {
  const found = new Map<string, EndpointAddress>();
  for (const { addressType, endpoints = [], ports = [] } of slices) {
    const port = ports.find(({ name, protocol }) => (name ?? "") === portName && isTcp(protocol))?.port;
    // FQDN slices name hosts to resolve, as ExternalName does.
    if (port === undefined || addressType === "FQDN") continue;
    for (const { addresses, conditions = {}, targetRef } of endpoints) {
      if (!isWanted(conditions)) continue;
      // The addresses of one endpoint are interchangeable: the first stands for all of them.
      const [host] = addresses;
      if (host !== undefined) found.set(`${host} ${port}`, { host, port, podUid: targetRef?.uid });
    }
  }
  return [...found.values()];
}
