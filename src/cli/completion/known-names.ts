import { kubeconfigFileNames, readKubeconfigFile } from "@sluice/client/internal/kubernetes/kubeconfig-files";
import type { Completion } from "../../config/flag.ts";
import { getShaped, listOf, object, optional, text } from "../client/answer-shape.ts";
import { openConnection } from "../client/connection.ts";
import type { Command, ValuesOf } from "../command.ts";
import { connectionFlags } from "../commands/connection-flags.ts";
import { parseFlags } from "../parse-flags.ts";

type ConnectionValues = ValuesOf<typeof connectionFlags>;

interface NamedObject {
  readonly metadata: { readonly name: string };
}

interface PodOfContainers {
  readonly spec?: { readonly containers?: readonly { readonly name: string }[] };
}

const NAMES = {
  what: "a list",
  shape: object({ items: optional(listOf(object({ metadata: object({ name: text }) }))) }),
};
const CONTAINERS = {
  what: "a pod",
  shape: object({ spec: optional(object({ containers: optional(listOf(object({ name: text }))) })) }),
};

const LISTS = { context: "contexts", cluster: "clusters", user: "users" } as const;

/**
 * Names for shells, from the kubeconfig and API server that the typed words select. Rejects if
 * either is unavailable.
 */
export async function knownNames(
  kind: Exclude<Completion, "file" | "folder">,
  command: Command,
  words: readonly string[],
): Promise<readonly string[]> {
  const invocation = parseFlags(command, words);
  const defaults = parseFlags({ flags: connectionFlags }, []);
  if (invocation === "help" || defaults === "help") return [];
  const values: ConnectionValues = { ...defaults.values, ...invocation.values };
  if (kind === "context" || kind === "cluster" || kind === "user") return entriesOf(LISTS[kind], values);
  const connection = await openConnection({ ...values, v: undefined });
  const pods = `/api/v1/namespaces/${encodeURIComponent(connection.namespace)}/pods`;
  if (kind === "container") {
    const [pod = ""] = invocation.operands;
    const path = `${pods}/${encodeURIComponent(pod)}`;
    const { spec } = await getShaped<PodOfContainers>(connection.target, path, CONTAINERS);
    return (spec?.containers ?? []).map(({ name }) => name);
  }
  const path = kind === "namespace" ? "/api/v1/namespaces" : pods;
  const { items } = await getShaped<{ items?: NamedObject[] }>(connection.target, path, NAMES);
  return (items ?? []).map(({ metadata }) => metadata.name);
}

async function entriesOf(list: string, { kubeconfig }: ConnectionValues): Promise<readonly string[]> {
  const files = kubeconfigFileNames(kubeconfig || undefined, process.env);
  const roots = await Promise.all(files.map((file) => readKubeconfigFile(file, [])));
  const names = roots.flatMap(({ root }) => root.sections(list).map((entry) => entry.optionalString("name")));
  return [...new Set(names.filter((name) => name !== undefined))];
}
