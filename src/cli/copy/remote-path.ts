import { posix } from "node:path";
import { CopyError } from "./copy-error.ts";
import type { RemoteShell } from "./remote-shell.ts";

export type Tool = "sha256sum" | "openssl" | "tail" | "tar" | "find" | "head";

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

/** Every step that fails is the script's failure; the path is the last thing that it prints, for it may hold line feeds. */
const INSPECT = `p="$1"; d="$2"; b="/$3"; CDPATH=
if [ -d "$p" ]; then k=folder; d="$p"; b=
elif [ -f "$p" ]; then k=file; elif [ -e "$p" ]; then k=other; else k=absent; fi
d=$(cd "$d" && pwd -P && echo .) || exit 1
d="\${d%??}"
[ "$d" = / ] && [ -n "$b" ] && d=
echo "kind $k"
if [ $k = file ]; then
if s=$(stat -L -c 'stat %s %Y %i
mode %a' "$p" 2>/dev/null); then echo "$s"; else s=$(wc -c < "$p") || exit 1; echo "size $s"; fi; fi
t="$d$b"; [ $k = folder ] && t="$t/$4"
[ -e "\${t%/*}/.\${t##*/}.sluice-partial" ] && echo "partial there"
for t in sha256sum openssl tail tar find head; do command -v $t >/dev/null 2>&1 && echo "tool $t"; done
printf 'path %s' "$d$b"`;

/**
 * Inspects a path; `name` is what will be put into it if it is a folder. Throws CopyError, also where its folder cannot be entered, and
 * what executors throw.
 */
export async function inspect(shell: RemoteShell, path: string, name = ""): Promise<RemotePath> {
  const [folder, base] = [posix.dirname(path), posix.basename(path)];
  return readInspection(await shell.mustRun(INSPECT, [argumentOf(path), argumentOf(folder), base, name]));
}

/** Whatever a container prints is checked before it is taken for a path. Throws CopyError "remote". */
export function readInspection(text: string): RemotePath {
  const pathAt = /(?:^|\n)path (?=\/)/.exec(text);
  const lines = text.slice(0, pathAt?.index ?? text.length).split("\n");
  const fieldOf = (name: string): string =>
    lines
      .find((line) => line.startsWith(`${name} `))
      ?.slice(name.length + 1)
      .trim() ?? "";
  const kind = fieldOf("kind");
  const version = fieldOf("stat");
  const size = version.split(" ")[0] || fieldOf("size") || (kind === "file" ? "" : "0");
  if (pathAt === null || !isKind(kind) || Number.isNaN(bytesIn(size))) {
    throw new CopyError(
      "remote",
      `the container's answer cannot be read: ${JSON.stringify(text.slice(0, 200))}`,
    );
  }
  const path = text.slice(pathAt.index + pathAt[0].length);
  // Links led there. What it was is lost, and a command's arguments are UTF-8, too.
  if (path.includes("\uFFFD"))
    throw new CopyError("remote", `in the container, a path is not UTF-8: ${path}`);
  const mode = Number.parseInt(fieldOf("mode"), 8);
  return {
    kind,
    path,
    size: Number(size),
    version,
    mode: Number.isNaN(mode) ? undefined : mode & 0o777,
    tools: new Set(lines.filter((line) => line.startsWith("tool ")).map((line) => line.slice(5) as Tool)),
    hasPartial: fieldOf("partial") !== "",
  };
}

function isKind(text: string): text is RemotePath["kind"] {
  return ["file", "folder", "other", "absent"].includes(text);
}

/** The number of bytes that a container printed, and NaN for anything else: nothing printed is not a 0. */
export function bytesIn(text: string): number {
  return /^\d{1,15}$/.test(text.trim()) ? Number(text) : Number.NaN;
}

/** No path is taken for a flag. */
export function argumentOf(path: string): string {
  return path.startsWith("-") ? `./${path}` : path;
}

/** Where a file or folder waits until it is whole. */
export function partialName(path: string): string {
  return posix.join(posix.dirname(path), `.${posix.basename(path)}.sluice-partial`);
}
