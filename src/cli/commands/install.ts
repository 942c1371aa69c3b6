import type { FlagTable } from "../../config/flag.ts";
import { defineCommand } from "../command.ts";

export const ROLES = ["gateway", "bastion", "ingress", "node"] as const;

export const installFlags = {
  "dry-run": { help: "print the manifests; nothing else is done", isRequired: true },
  role: {
    value: ROLES.join("|"),
    help: "what is installed: a gateway in front of the API server, the same for users of an OpenID Connect issuer, an Ingress controller, or the DaemonSet for the kubelet's port",
    default: "gateway",
    choices: ROLES,
  },
  namespace: {
    short: "n",
    value: "NAME",
    help: "where it is installed",
    default: "sluice",
    completes: "namespace",
  },
  image: { value: "REFERENCE", help: "the image; without it sluice with this version as its tag" },
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: ["--dry-run [flags]"],
  description:
    "Prints the manifests of the chart with its defaults, for clusters without helm. kubectl applies them, with its own credentials. What is to be different is patched with kustomize (deploy/kustomize) or set with helm (deploy/chart).",
  flags: installFlags,
  examples: [
    { title: "See what would be installed", line: "kubectl sluice install --dry-run" },
    {
      title: "An Ingress controller, to be piped into kubectl apply -f -",
      line: "sluice install --dry-run --role ingress --image registry.example.com/sluice:1.0.0",
    },
  ],
});
