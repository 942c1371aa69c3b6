import type { FlagTable } from "../../config/flag.ts";
import { defineCommand } from "../command.ts";

export const ROLES = ["gateway", "bastion", "ingress", "node"] as const;

const installFlags = {
  "dry-run": { help: "print the manifests, and do nothing else", isRequired: true },
  role: {
    value: ROLES.join("|"),
    help: "a gateway in front of the API server, the same for users of an OpenID Connect issuer, an Ingress controller, or the DaemonSet for the kubelet's port",
    default: "gateway",
    choices: ROLES,
  },
  namespace: {
    short: "n",
    value: "NAME",
    help: "the namespace to install into",
    default: "sluice",
    completes: "namespace",
  },
  image: { value: "REFERENCE", help: "the image; default: sluice with this version as its tag" },
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: ["--dry-run [flags]"],
  description:
    "Prints the manifests of the chart with its defaults, for clusters without helm. kubectl applies them, with its own credentials. For changes, patch them with kustomize (deploy/kustomize), or use helm (deploy/chart).",
  flags: installFlags,
  examples: [
    { title: "See the manifests", line: "kubectl sluice install --dry-run" },
    {
      title: "An Ingress controller, to be piped into kubectl apply -f -",
      line: "sluice install --dry-run --role ingress --image registry.example.com/sluice:1.0.0",
    },
  ],
});
