// Scripts that an upload runs in the container. `$1` is the file that grows beside the destination;
// `$1.pid` contains its writer's process ID.
import { HASH_FUNCTION } from "./hashing.ts";
import { SIZE_FUNCTION } from "./remote-path.ts";

/**
 * Removes whatever is at our hidden name and never follows it: another user may have planted a link
 * there.
 */
const OWN_PID = 'rm -f "$1.pid" || exit 1; set -C';
const OWN_FILE = `rm -f "$1" || exit 1; ${OWN_PID}`;
/**
 * The writer leaves its process ID, so that it can be stopped after a lost connection. It is a
 * child, because containerd cuts off a command's input when its stdout is closed
 * (containerd#13934). At the end it prints the SHA-256, or the size without a `$2`.
 */
const writer = (
  before: string,
  redirection: string,
): string => `${HASH_FUNCTION}${SIZE_FUNCTION}${before}; exec 3<&0
cat <&3 3<&- ${redirection} "$1" & echo $! > "$1.pid"; exec 3<&-; wait $! || exit $?
if [ -n "$2" ]; then h "$1"; else z "$1"; fi`;
export const WRITE: string = writer(OWN_FILE, ">");
export const APPEND: string = writer(
  `if [ -L "$1" ]; then echo "$1 is a link" >&2; exit 1; fi; ${OWN_PID}`,
  ">>",
);
/**
 * Writes and hashes at once: the reader follows the writer, like GNU's `tail -f --pid`. It ends
 * with its shell, since the container's process 1 may not reap children.
 */
export const WRITE_AND_HASH: string = `${OWN_FILE}; exec 3<&0; exec 4> "$1" || exit $?
cat <&3 3<&- >&4 4>&- & w=$!; echo $w > "$1.pid"; exec 3<&- 4>&-
{ while kill -0 $w && kill -0 $$; do cat; sleep 0.1 || sleep 1; done; cat; } < "$1" 2>/dev/null | sha256sum & f=$!
wait $w || exit $?; wait $f`;
/**
 * Stops an earlier writer, by process ID and only if it has this file open, and prints how far it
 * came. Ignores links, also hard links to files with another name.
 */
export const HOW_FAR: string = `${SIZE_FUNCTION}p="$1"; if [ -f "$p.pid" ]; then i=$(cat "$p.pid"); n=0
while [ -n "$i" ] && [ "$(readlink "/proc/$i/fd/1" 2>/dev/null)" = "$p" ] && [ $n -lt 20 ]; do kill -9 "$i" 2>/dev/null; [ $n -lt 3 ] || sleep 1; n=$((n+1)); done; fi
if [ -L "$p" ] || [ "$(stat -c %h "$p" 2>/dev/null || echo 1)" != 1 ]; then rm -f "$p" || exit 1; fi
if [ -f "$p" ]; then z "$p"; else echo 0; fi`;
/**
 * If an earlier call did this and only its answer was lost, prints the SHA-256 of the finished file. `$5`: the
 * size, if an earlier writer may have begun since it was checked.
 */
export const FINISH: string = `${HASH_FUNCTION}${SIZE_FUNCTION}if [ -n "$4" ] && [ ! -e "$1" ] && [ -f "$2" ]; then h "$2"; exit; fi
if [ -n "$5" ] && ! [ "$(z "$1")" -eq "$5" ]; then echo "$1 was written to again" >&2; exit 1; fi
if [ -d "$2" ]; then echo "$2 is a folder" >&2; exit 1; fi
if [ -n "$3" ]; then chmod "$3" "$1" || exit $?; fi; rm -f "$1.pid" && mv -f "$1" "$2"`;
export const REMOVE = 'rm -f "$1" "$1.pid"';
