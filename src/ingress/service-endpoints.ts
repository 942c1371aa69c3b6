import type { EndpointSlice, Service } from "../api/networking-objects.ts";

/** The addresses of one Service port, and their protocol. */
interface ServiceEndpoints {
  /** Distinct host:port pairs; empty if no endpoint is ready. */
  readonly addresses: readonly EndpointAddress[];
  /** The Service's appProtocol, such as `kubernetes.io/h2c` or `kubernetes.io/ws`. */
  readonly appProtocol: string | undefined;
}

interface EndpointAddress {
  readonly host: string;
  readonly port: number;
  /** The pod's UID; undefined if the slice names none. */
  readonly podUid: string | undefined;
}

/** Why a Service has no endpoints. */
export type EndpointProblem = "no-service" | "no-such-port" | "external-name" | "no-authority";

/**
 * The endpoints of a Service port, given by number or name: the ready ones, or else those that
 * still serve while terminating. Slices name ports as the Service does, or not at all.
 */
export function endpointsOf(
  service: Service | undefined,
  slices: readonly EndpointSlice[],
  wanted: number | string,
): ServiceEndpoints | EndpointProblem {
  if (service === undefined) return "no-service";
  // An external name may resolve to any address, even to that of the metadata service.
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

/** A UDP port may have the same number, as for DNS and HTTP/3. */
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
    // FQDN slices contain host names, which have the same risk as ExternalName.
    if (port === undefined || addressType === "FQDN") continue;
    for (const { addresses, conditions = {}, targetRef } of endpoints) {
      if (!isWanted(conditions)) continue;
      // An endpoint's addresses are interchangeable; the first one is used.
      const [host] = addresses;
      if (host !== undefined) found.set(`${host} ${port}`, { host, port, podUid: targetRef?.uid });
    }
  }
  return [...found.values()];
}
