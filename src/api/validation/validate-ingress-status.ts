import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import { type FieldError, invalidValue } from "../field-errors.ts";
import type { Ingress, IngressAddress } from "../networking-objects.ts";
import { isLenientIP, NOT_AN_IP } from "./ip-rules.ts";
import { subdomainProblems } from "./name-rules.ts";

export function ingressStatusErrors({ status }: Ingress): FieldError[] {
  const addresses = status?.loadBalancer?.ingress ?? [];
  return addresses.flatMap((address, index) =>
    addressErrors(address ?? {}, ["status", "loadBalancer", "ingress", index]),
  );
}

function addressErrors({ ip = "", hostname = "" }: IngressAddress, path: FieldPath): FieldError[] {
  const hostnamePath = [...path, "hostname"];
  const nameProblems = hostname === "" ? [] : subdomainProblems(hostname);
  return [
    ...(ip === "" || isLenientIP(ip) ? [] : [invalidValue([...path, "ip"], ip, NOT_AN_IP)]),
    ...nameProblems.map((problem) => invalidValue(hostnamePath, hostname, problem)),
    ...(isLenientIP(hostname)
      ? [invalidValue(hostnamePath, hostname, "must be a DNS name, not an IP address")]
      : []),
  ];
}
