import { posix } from "node:path";
import { CopyError } from "./copy-error.ts";
import type { RemoteShell } from "./remote-shell.ts";

export type Tool = "sha256sum" | "openssl" | "tail" | "tar" | "find" | "head";

/** A path in the container, and the programs available there. */
export interface RemotePath {
  readonly kind: "file" | "folder" | "other" | "absent";
  /** Absolute, with its folder's links resolved. */
  readonly path: string;
  /** For a file: changes whenever the file is written. */
  readonly size: number;
  readonly version: string;
  readonly mode: number | undefined;
  readonly tools: ReadonlySet<Tool>;
  /** An earlier upload left a part beside it or, with `name`, inside it. */
  readonly hasPartial: boolean;
}

/**
 * A shell function that prints a file's size. busybox's wc would read the whole file, a character
 * at a time: seconds per 100 MiB.
 */
export const SIZE_FUNCTION = `z() { stat -L -c %s "$1" 2>/dev/null || wc -c < "$1"; }
`;

/** Every failing step fails the script. The path comes last, because it may contain line feeds. */
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
 * Inspects a path; `name` will be put into it if it is a folder. Throws CopyError, also if its
 * folder cannot be entered, and executors' errors.
 */
export async function inspect(shell: RemoteShell, path: string, name = ""): Promise<RemotePath> {
  const [folder, base] = [posix.dirname(path), posix.basename(path)];
  return readInspection(await shell.mustRun(INSPECT, [argumentOf(path), argumentOf(folder), base, name]));
}

/** Checks a container's output before using it as a path. Throws CopyError "remote". */
function readInspection(text: string): RemotePath {
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
  // Links led to this path. Its original bytes are lost, and a command's arguments are UTF-8, too.
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

/** The byte count that a container printed; NaN for anything else, because empty output does not mean 0. */
export function bytesIn(text: string): number {
  return /^\d{1,15}$/.test(text.trim()) ? Number(text) : Number.NaN;
}

/** Keeps a path from being taken for a flag. */
function argumentOf(path: string): string {
  return path.startsWith("-") ? `./${path}` : path;
}

/** The name of an incomplete file or folder. */
export function partialName(path: string): string {
  return posix.join(posix.dirname(path), `.${posix.basename(path)}.sluice-partial`);
}
