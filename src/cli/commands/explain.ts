import type { FlagTable } from "../../config/flag.ts";
import { defineCommand } from "../command.ts";
import { remotePort } from "../flag-readers.ts";

const group = "The session, for the verdict";

const explainFlags = {
  config: {
    value: "FILE",
    help: "the GatewayConfiguration",
    isRequired: true,
    advice:
      "policy and the way to the nodes are in the gateway's configuration, not in a kubeconfig.\n" +
      "In a cluster: kubectl get configmap -n sluice sluice-gateway -o jsonpath='{.data.config\\.yaml}' > sluice.yaml\n" +
      "Of a demo: gateway.yaml in its folder. Of the API server alone: kubectl auth can-i create pods/exec",
    completes: "file",
  },
  admin: {
    value: "URL",
    help: "the admin listener of a running gateway, to include what it learned about the node",
  },
  container: { short: "c", value: "NAME", help: "as kubectl -c; default: kubectl's own" },
  namespace: { short: "n", value: "NAME", help: "the namespace; default: the context's, or default", group },
  kubeconfig: {
    value: "FILE",
    help: "the kubeconfig of your credentials; default: kubectl's own",
    completes: "file",
    group,
  },
  context: { value: "NAME", help: "a context of the kubeconfig", completes: "context", group },
  as: { value: "USER", help: "the user, instead of the kubeconfig's", group },
  "as-group": { value: "GROUP", help: "a group of --as", isRepeatable: true, group },
  user: { value: "NAME", help: "the same as --as", group },
  group: { value: "NAME", help: "the same as --as-group", isRepeatable: true, group },
  command: {
    value: "ARG",
    help: "an argument of the command; once for each, the program first",
    isRepeatable: true,
    group,
  },
  tty: { short: "t", help: "as kubectl -t", group },
  stdin: { short: "i", help: "as kubectl -i", group },
  port: { value: "NUMBER", help: "a port to forward", isRepeatable: true, parse: remotePort, group },
  reason: { value: "TEXT", help: "as the header Sluice-Reason", group },
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: [
    "--config FILE SUBRESOURCE [NAMESPACE/]POD [flags]",
    "--config FILE node/NAME [flags]",
    "--config FILE URL",
  ],
  description:
    "Prints whether authorization and policy allow a session, for the user of --as or of your kubeconfig, and its path for each kind of client, with the reason. For a node it prints how sessions reach it; for a URL, which Ingress serves it.",
  operands: [
    {
      name: "SUBRESOURCE",
      help: "exec, attach or portforward; port-forward and cp are understood",
      choices: ["exec", "attach", "portforward"],
    },
    { name: "[NAMESPACE/]POD", help: "the pod" },
    { name: "node/NAME", help: "a node, instead of one session" },
    { name: "URL", help: "http:// or https://, of the Ingresses in cluster.manifests" },
  ],
  flags: explainFlags,
  examples: [
    {
      title: "Whether you may exec into the pod web, and how it is reached",
      line: "sluice explain --config sluice.yaml exec web",
    },
    {
      title: "Whether the policy lets jane run sh there",
      line: "sluice explain --config sluice.yaml exec default/web --as jane --command sh --tty --stdin",
    },
    {
      title: "How sessions reach a node, as a running gateway sees it",
      line: "sluice explain --config sluice.yaml node/node-1 --admin http://127.0.0.1:9090",
    },
    {
      title: "Find the Service and path that serve a URL",
      line: "sluice explain --config sluice.yaml https://app.example.com/shop/cart",
    },
  ],
  exitCodes:
    "0; 1 if the request would be refused over both WebSocket and SPDY, or the node cannot be reached; 2 for usage or configuration.",
});
