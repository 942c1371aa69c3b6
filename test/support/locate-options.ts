import type { LocateOptions } from "../../src/cluster/locate.ts";

/** kube-apiserver's defaults. */
export const defaultLocateOptions: LocateOptions = {
  preferredAddressTypes: ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"],
  defaultKubeletPort: 10_250,
};
