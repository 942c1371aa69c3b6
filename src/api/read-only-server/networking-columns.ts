import type { Ingress, IngressClass, IngressRule, Service } from "../networking-objects.ts";
import { ageOf } from "./human-duration.ts";

/** Cells of Services and Ingresses, as in kube-apiserver's printers. */
export function networkingCells(object: Service | Ingress | IngressClass, now: Date): string[] {
  switch (object.kind) {
    case "Service":
      return serviceCells(object, now);
    case "Ingress":
      return ingressCells(object, now);
    case "IngressClass":
      return ingressClassCells(object, now);
  }
}

function serviceCells({ metadata, spec = {}, status }: Service, now: Date): string[] {
  const { type = "ClusterIP", clusterIP, clusterIPs = clusterIP ? [clusterIP] : [], ports = [] } = spec;
  return [
    metadata.name,
    type,
    clusterIPs[0] || "<none>",
    externalAddressOf(type, spec, status),
    ports
      .map(({ port, nodePort, protocol = "TCP" }) =>
        nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`,
      )
      .join(",") || "<none>",
    ageOf(metadata.creationTimestamp, now),
    Object.entries(spec.selector ?? {})
      .map(([key, value]) => `${key}=${value}`)
      .sort()
      .join(",") || "<none>",
  ];
}

function externalAddressOf(
  type: string,
  { externalName, externalIPs }: NonNullable<Service["spec"]>,
  status: Service["status"],
): string {
  const own = Array.isArray(externalIPs) ? externalIPs : [];
  switch (type) {
    case "ExternalName":
      return externalName ?? "";
    case "LoadBalancer": {
      const balanced = addressesOf(status as Ingress["status"]);
      return (
        (own.length > 0 ? [balanced, ...own].filter((text) => text !== "").join(",") : balanced) ||
        "<pending>"
      );
    }
    default:
      return own.join(",") || "<none>";
  }
}

function ingressCells({ metadata, spec = {}, status }: Ingress, now: Date): string[] {
  return [
    metadata.name,
    spec.ingressClassName ?? "<none>",
    hostsOf(spec.rules ?? []),
    addressesOf(status),
    (spec.tls ?? []).length > 0 ? "80, 443" : "80",
    ageOf(metadata.creationTimestamp, now),
  ];
}

const MAX_SHOWN_HOSTS = 3;

function hostsOf(rules: readonly IngressRule[]): string {
  const shown: string[] = [];
  for (const { host } of rules) {
    if (shown.length === MAX_SHOWN_HOSTS) {
      return `${shown.join(",")} + ${rules.length - MAX_SHOWN_HOSTS} more...`;
    }
    if (host) shown.push(host);
  }
  return shown.join(",") || "*";
}

function addressesOf(status: Ingress["status"]): string {
  const addresses = (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || "");
  return [...new Set(addresses)]
    .filter((address) => address !== "")
    .sort()
    .join(",");
}

function ingressClassCells({ metadata, spec = {} }: IngressClass, now: Date): string[] {
  const { controller = "", parameters } = spec;
  const group = parameters?.apiGroup === undefined ? "" : `.${parameters.apiGroup}`;
  return [
    metadata.name,
    controller,
    parameters === undefined ? "<none>" : `${parameters.kind}${group}/${parameters.name}`,
    ageOf(metadata.creationTimestamp, now),
  ];
}
