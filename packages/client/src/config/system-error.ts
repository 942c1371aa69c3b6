/** Texts of Go's syscall.Errno. */
export const ERRNO_TEXTS: Readonly<Record<string, string>> = {
  E2BIG: "argument list too long",
  EACCES: "permission denied",
  EADDRINUSE: "address already in use",
  EADDRNOTAVAIL: "cannot assign requested address",
  EAGAIN: "resource temporarily unavailable",
  EBUSY: "device or resource busy",
  ECONNABORTED: "software caused connection abort",
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection reset by peer",
  EDQUOT: "disk quota exceeded",
  EEXIST: "file exists",
  EFBIG: "file too large",
  EHOSTDOWN: "host is down",
  EHOSTUNREACH: "no route to host",
  EINVAL: "invalid argument",
  EIO: "input/output error",
  EISDIR: "is a directory",
  ELOOP: "too many levels of symbolic links",
  EMFILE: "too many open files",
  ENAMETOOLONG: "file name too long",
  ENETUNREACH: "network is unreachable",
  ENFILE: "too many open files in system",
  ENOENT: "no such file or directory",
  ENOEXEC: "exec format error",
  ENOMEM: "cannot allocate memory",
  ENOSPC: "no space left on device",
  ENOTDIR: "not a directory",
  ENOTEMPTY: "directory not empty",
  EPERM: "operation not permitted",
  EPIPE: "broken pipe",
  EROFS: "read-only file system",
  ERR_FS_EISDIR: "is a directory",
  ETIMEDOUT: "connection timed out",
  ETXTBSY: "text file busy",
  EXDEV: "invalid cross-device link",
};

/** Node's names of calls that are others in Go's texts. */
const CALLS: Readonly<Record<string, string>> = { scandir: "open", getaddrinfo: "lookup", rm: "unlink" };

/** A path in a text; the names of archives may take 64 KiB. */
const SHOWN_CHARACTERS = 256;

/**
 * An error as kubectl says it: `open FILE: no such file or directory`, `listen tcp HOST:PORT: bind:
 * address already in use`. The texts of other errors are theirs.
 */
export function systemErrorText(error: unknown): string {
  // A name with several addresses fails with one error for each; Go reports the first.
  if (error instanceof AggregateError && error.errors.length > 0) return systemErrorText(error.errors[0]);
  const reason = systemErrorReason(error);
  if (!isSystemError(error) || error.syscall === undefined) return reason;
  const { syscall, path, dest, address, port, hostname } = error;
  // The text of a code that Node knows and Go does not.
  if (reason === error.message && (path === undefined || reason.startsWith(error.code))) return reason;
  const [call = ""] = (CALLS[syscall] ?? syscall).split(" ");
  if (hostname !== undefined) return `${call} ${hostname}: ${reason}`;
  if (address !== undefined) {
    const host = address.includes(":") ? `[${address}]` : address;
    const at = port === undefined || port < 0 ? `unix ${address}` : `tcp ${host}:${port}`;
    return call === "listen" ? `listen ${at}: bind: ${reason}` : `dial ${at}: ${call}: ${reason}`;
  }
  const files = [path, dest].filter((file) => file !== undefined).map(shown);
  return `${[call, ...files].join(" ")}: ${reason}`;
}

/** Why alone, for a text that begins with the file or address. */
export function systemErrorReason(error: unknown): string {
  if (!isSystemError(error)) return error instanceof Error ? error.message : String(error);
  const { code, syscall } = error;
  if (syscall === "getaddrinfo")
    return code === "EAI_AGAIN" ? "Temporary failure in name resolution" : "no such host";
  return ERRNO_TEXTS[code] ?? error.message;
}

interface SystemError extends Error {
  readonly code: string;
  readonly syscall?: string;
  readonly path?: string | Buffer;
  readonly dest?: string | Buffer;
  readonly address?: string;
  readonly port?: number;
  readonly hostname?: string;
}

function isSystemError(error: unknown): error is SystemError {
  if (!(error instanceof Error) || !("code" in error)) return false;
  const { code } = error;
  return typeof code === "string" && ("syscall" in error || Object.hasOwn(ERRNO_TEXTS, code));
}

function shown(file: string | Buffer): string {
  const text = file.toString();
  return text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS)}...`;
}
