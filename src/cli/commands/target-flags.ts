import type { FlagTable } from "../../config/flag.ts";
import type { ValuesOf } from "../command.ts";

export const TARGET_GROUP = "The server";

/** Flags for a server under test or load: from a kubeconfig, or any other by its URL. */
export const targetFlags = {
  kubeconfig: {
    value: "FILE",
    help: "the kubeconfig of an API server",
    completes: "file",
    group: TARGET_GROUP,
  },
  context: { value: "NAME", help: "a context of the kubeconfig", completes: "context", group: TARGET_GROUP },
  server: { value: "URL", help: "a server, instead of a kubeconfig", group: TARGET_GROUP },
  token: { value: "TOKEN", help: "a bearer token for the server", group: TARGET_GROUP },
  "token-file": {
    value: "FILE",
    help: "a file with a bearer token for the server",
    completes: "file",
    group: TARGET_GROUP,
  },
  "certificate-authority": {
    value: "FILE",
    help: "authorities of the server's certificate",
    completes: "file",
    group: TARGET_GROUP,
  },
  "client-certificate": {
    value: "FILE",
    help: "a client certificate for the server",
    completes: "file",
    group: TARGET_GROUP,
  },
  "client-key": {
    value: "FILE",
    help: "the private key of --client-certificate",
    completes: "file",
    group: TARGET_GROUP,
  },
  "insecure-skip-tls-verify": { help: "do not verify the server's certificate", group: TARGET_GROUP },
} as const satisfies FlagTable;

export type TargetValues = ValuesOf<typeof targetFlags>;
