import { posix } from "node:path";
import type { RemoteShell } from "./remote-shell.ts";

export type Tool = "sha256sum" | "openssl" | "tail" | "tar" | "find";

/** What a path in the container is, and what there is to work with. */
export interface RemotePath {
  readonly kind: "file" | "folder" | "other" | "absent";
  /** Absolute, with the links of its folder followed. */
  readonly path: string;
  /** A file's: what changes when it is written to. */
  readonly size: number;
  readonly version: string;
  readonly mode: number | undefined;
  readonly tools: ReadonlySet<Tool>;
  /** Something of an upload of before lies beside it, or, of `name`, in it. */
  readonly hasPartial: boolean;
}

/** A shell function that prints a file's size. busybox's wc reads all of a file for it, a character at a time: seconds for each 100 MiB. */
export const SIZE_FUNCTION = `z() { stat -L -c %s "$1" 2>/dev/null || wc -c < "$1"; }
`;

const INSPECT = `p="$1"
if [ -d "$p" ]; then k=folder; d="$p"; b=; else d=$(dirname "$p"); b=/$(basename "$p")
if [ -f "$p" ]; then k=file; elif [ -e "$p" ]; then k=other; else k=absent; fi; fi
d=$(cd "$d" 2>/dev/null && pwd -P) || d=
[ "$d" = / ] && [ -n "$b" ] && d=
echo "kind $k"; echo "path $d$b"
if [ $k = file ]; then stat -L -c 'stat %s %Y %i
mode %a' "$p" 2>/dev/null || echo "size $(wc -c < "$p")"; fi
t="$d$b"; [ $k = folder ] && t="$t/$2"
[ -e "\${t%/*}/.\${t##*/}.sluice-partial" ] && echo "partial there"
for t in sha256sum openssl tail tar find; do command -v $t >/dev/null 2>&1 && echo "tool $t"; done
true`;

/**
 * Looks at a path; `name` is what will be put there should it be a folder. Throws CopyError, and what executors throw: also where the
 * container has no shell.
 */
export async function inspect(shell: RemoteShell, path: string, name = ""): Promise<RemotePath> {
  const lines = (await shell.mustRun(INSPECT, [argumentOf(path), name])).split("\n");
  const fieldOf = (name: string): string =>
    lines
      .find((line) => line.startsWith(`${name} `))
      ?.slice(name.length + 1)
      .trim() ?? "";
  const tools = lines.filter((line) => line.startsWith("tool ")).map((line) => line.slice(5) as Tool);
  const mode = Number.parseInt(fieldOf("mode"), 8);
  return {
    kind: fieldOf("kind") as RemotePath["kind"],
    path: fieldOf("path") || path,
    size: Number(fieldOf("size") || fieldOf("stat").split(" ")[0] || 0),
    version: fieldOf("stat"),
    mode: Number.isNaN(mode) ? undefined : mode & 0o777,
    tools: new Set(tools),
    hasPartial: fieldOf("partial") !== "",
  };
}

/** No path is taken for a flag. */
export function argumentOf(path: string): string {
  return path.startsWith("-") ? `./${path}` : path;
}

/** Where a file or folder waits until it is whole. */
export function partialName(path: string): string {
  return posix.join(posix.dirname(path), `.${posix.basename(path)}.sluice-partial`);
}
