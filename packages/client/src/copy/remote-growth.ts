import { shownName } from "./archive-names.ts";
import type { CopyContext } from "./copy-context.ts";
import { CopyError } from "./copy-error.ts";
import { canHash, HASH_FUNCTION } from "./hashing.ts";
import { bytesIn, type RemotePath, SIZE_FUNCTION } from "./remote-path.ts";

/** The part of a file that was read: SHA-256 in hexadecimal, and bytes. */
interface RemoteGrowth {
  readonly hash: string;
  readonly size: number;
}

/**
 * Prints each file's size and the hash of its read part: `$2`, `$4` ... are names for `printf %b`,
 * `$3`, `$5` ... the bytes that were read.
 */
const LOOK = `${SIZE_FUNCTION}${HASH_FUNCTION}cd "$1" || exit 1; hashes="$2"; shift 2
while [ $# -gt 1 ]; do f=$(printf '%b.' "$1"); f="./\${f%.}"; s=$(z "$f"); x=
if [ -n "$hashes" ]; then head -c "$2" "$f" > /dev/null || exit 1
x=$(head -c "$2" "$f" | if command -v openssl >/dev/null 2>&1; then openssl dgst -sha256; else sha256sum; fi); fi
echo $s $x; shift 2; done`;
/**
 * Files that grew during a download and that one command compares, as their names fit in a URL.
 * Past it: further commands.
 */
const FILES_AT_ONCE = 8;

/** The files that tar reports as changed, by name in bytes; undefined if it reports anything else, too. */
export function changedNames(stderr: string): string[] | undefined {
  const lines = stderr.split("\n").filter((line) => !/^\s*$|: socket ignored$/.test(line));
  const names = lines.map((line) => /^\S*tar: (.*): file changed as we read it$/.exec(line)?.[1]);
  return names.includes(undefined) ? undefined : names.map((name) => unquoted(name ?? ""));
}

/** Throws CopyError "changed" if a file did more than grow; notes those that grew. */
export async function checkRemoteGrowth(
  source: RemotePath,
  suspects: ReadonlyMap<string, RemoteGrowth>,
  context: CopyContext,
): Promise<void> {
  const { shell, verifies } = context;
  const files = [...suspects];
  const isHashed = verifies && canHash(source.tools);
  for (let at = 0; at < files.length; at += FILES_AT_ONCE) {
    const part = files.slice(at, at + FILES_AT_ONCE);
    const [first] = part;
    if (isHashed && !source.tools.has("head") && first !== undefined)
      throw changedWhileRead(shownName(first[0]));
    const args = part.flatMap(([name, { size }]) => [escaped(name), String(size)]);
    const text = await shell.mustRun(LOOK, [source.path, isHashed ? "hash" : "", ...args]);
    const lines = text.split("\n");
    for (const [index, [name, { hash, size }]] of part.entries()) {
      const [nowSize = "", ...printed] = lines[index]?.split(" ") ?? [];
      const hasGrown = bytesIn(nowSize) > size && (!isHashed || printed.includes(hash));
      if (!hasGrown) throw changedWhileRead(shownName(name));
      warnOfGrowth(context, shownName(name), size);
    }
  }
}

/** Escapes for `printf %b`: an argument is UTF-8, but a name need not be. */
function escaped(name: string): string {
  return name.replace(/[^\w./-]/g, (byte) => `\\0${byte.charCodeAt(0).toString(8).padStart(3, "0")}`);
}

const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  a: "\x07",
  b: "\b",
  f: "\f",
  v: "\v",
};

/** Reads names as GNU tar writes them: bytes that its locale cannot print are octal. */
function unquoted(name: string): string {
  const bytes = Buffer.from(name).toString("latin1");
  return bytes.replace(/\\([0-7]{3}|.)/g, (_all, code: string) =>
    code.length === 3 ? String.fromCharCode(Number.parseInt(code, 8)) : (ESCAPES[code] ?? code),
  );
}

interface Known {
  readonly size: number;
  readonly mtimeMs: number;
}

/**
 * Whether a file grew after its first `readBytes` were read, so those bytes are still its start.
 * Throws CopyError "changed" if it shrank or was overwritten in place.
 */
export function hasOnlyGrown(name: string, before: Known, readBytes: number, after: Known): boolean {
  const hasGrown = after.size > before.size;
  const isSame = after.size === before.size && after.mtimeMs === before.mtimeMs;
  if (readBytes !== before.size || !(hasGrown || isSame)) throw changedWhileRead(name);
  return hasGrown;
}

/** Warns that the copy contains a file's first `bytes`, its state when the copy began. */
export function warnOfGrowth({ warn }: Pick<CopyContext, "warn">, name: string, bytes: number): void {
  warn(`${name} grew while it was read: the copy has its first ${bytes} bytes`);
}

export function changedWhileRead(name: string): CopyError {
  return new CopyError("changed", `${name}: file changed as we read it`);
}
