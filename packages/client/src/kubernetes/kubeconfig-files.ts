import { existsSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { type ConfigurationProblem, unreadFile } from "../config/configuration-error.ts";
import { readNamedFile } from "../config/named-file-text.ts";
import { plainYaml } from "../config/plain-yaml.ts";
import { Section } from "../config/section.ts";
import type { YamlDocument } from "../config/yaml-documents.ts";

/** A kubeconfig. Past it, it is refused before it is read. */
const MAX_KUBECONFIG_BYTES = 4 * 1024 * 1024;

/** A file in kubeconfig format, parsed but not interpreted. `problems` collects its errors. */
export interface KubeconfigFile {
  readonly name: string;
  readonly root: Section;
}

/**
 * The files that kubectl would read: the given one, or the existing ones in $KUBECONFIG, or
 * `~/.kube/config`. Empty if none is given and none exists.
 */
export function kubeconfigFileNames(given: string | undefined, environment: NodeJS.ProcessEnv): string[] {
  if (given !== undefined) return [path.resolve(given)];
  const listed = (environment.KUBECONFIG ?? "").split(path.delimiter).filter((name) => name !== "");
  const names = listed.length > 0 ? listed : [path.join(environment.HOME || homedir(), ".kube", "config")];
  return names.filter((name) => existsSync(name)).map((name) => path.resolve(name));
}

/** Throws ConfigurationError for a file that is unreadable, too large or not YAML. */
export async function readKubeconfigFile(
  name: string,
  problems: ConfigurationProblem[],
): Promise<KubeconfigFile> {
  const text = await textOf(name);
  const document = plainYaml(text) ?? (await firstDocument(text, name));
  const context = { fileName: name, document, problems, secretField: "users" };
  return { name, root: new Section(context, [], withoutEmptyTexts(document.value)) };
}

async function firstDocument(text: string, name: string): Promise<Pick<YamlDocument, "value" | "placeOf">> {
  const { EMPTY_DOCUMENT, parseYamlDocuments } = await import("../config/yaml-documents.ts");
  const [document] = parseYamlDocuments(text, name, {
    lastKeyWins: true,
    maxCharacters: MAX_KUBECONFIG_BYTES,
  });
  return document ?? EMPTY_DOCUMENT;
}

async function textOf(name: string): Promise<string> {
  try {
    return await readNamedFile(name, {
      maxBytes: MAX_KUBECONFIG_BYTES,
      decode: decodeByMark,
      isAtStart: true,
    });
  } catch (error) {
    throw unreadFile(name, error);
  }
}

/** Decodes UTF-16 by its byte order mark, as Go's YAML does: PowerShell's `>` writes such files. */
function decodeByMark(bytes: Buffer): string {
  const mark = bytes.subarray(0, 2).toString("hex");
  if (mark === "fffe") return bytes.subarray(2).toString("utf16le");
  if (mark !== "feff") return bytes.toString("utf8");
  return bytes
    .subarray(2, bytes.length & ~1)
    .swap16()
    .toString("utf16le");
}

/** client-go treats an empty string as absent; tools write `namespace: ""`. */
function withoutEmptyTexts(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmptyTexts);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).filter(([, member]) => member !== "");
  return Object.fromEntries(members.map(([key, member]) => [key, withoutEmptyTexts(member)]));
}
