import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import { duplicate, type FieldError, invalidValue, required } from "../field-errors.ts";
import type { Namespace, Node, NodeAddress } from "../objects.ts";
import { labelProblems, subdomainProblems } from "./name-rules.ts";
import { validateMetadata } from "./validate-metadata.ts";

/**
 * The API server's checks of the Node fields that Sluice reads, and that the node can be dialled:
 * kubelets report address and port themselves, but a file's author may mistype them.
 */
export function validateNode({ metadata, status }: Node): FieldError[] {
  const portPath = ["status", "daemonEndpoints", "kubeletEndpoint", "Port"];
  const port = status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0;
  const isPort = port >= 0 && port <= 65_535;
  return [
    ...validateMetadata(metadata, { isNamespaced: false, nameProblems: subdomainProblems }),
    ...addressErrors(status?.addresses ?? [], ["status", "addresses"]),
    ...(isPort ? [] : [invalidValue(portPath, port, "must be between 0 and 65535, inclusive")]),
  ];
}

export function validateNamespace({ metadata }: Namespace): FieldError[] {
  return validateMetadata(metadata, { isNamespaced: false, nameProblems: labelProblems });
}

function addressErrors(addresses: readonly NodeAddress[], path: FieldPath): FieldError[] {
  const seen = new Set<string>();
  return addresses.flatMap((entry, index) => {
    const { type = "", address = "" } = entry ?? {};
    const key = JSON.stringify([type, address]);
    const isTaken = seen.has(key);
    seen.add(key);
    return [
      ...(type === "" ? [required([...path, index, "type"])] : []),
      ...(address === "" ? [required([...path, index, "address"])] : []),
      ...(isTaken ? [duplicate([...path, index], { type, address })] : []),
    ];
  });
}
