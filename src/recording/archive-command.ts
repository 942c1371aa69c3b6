import path from "node:path";

/** What a `tar` command does with its archive: `pack` writes it to stdout, `unpack` reads it from stdin. */
export type ArchiveUse = "pack" | "unpack";

const SHELLS = ["sh", "bash", "ash", "dash", "busybox"];
/** `sluice cp`, and `kubectl cp` when it resumes, run tar in a shell script. */
const IN_SCRIPT = /(?:^|[;&|]\s*|\bexec\s+)tar\s+(\S+)/;

/** Recognises the commands of `kubectl cp` and `sluice cp`. Undefined for any other command. */
export function archiveUseOf(command: readonly string[]): ArchiveUse | undefined {
  const [program = "", first = "", script = ""] = command;
  const name = path.posix.basename(program);
  if (name === "tar") return useOf(first);
  if (!SHELLS.includes(name) || first !== "-c") return undefined;
  return useOf(IN_SCRIPT.exec(script)?.[1] ?? "");
}

function useOf(options: string): ArchiveUse | undefined {
  if (options === "--create" || /^-?[a-zA-Z]*c/.test(options)) return "pack";
  return options === "--extract" || options === "--get" || /^-?[a-zA-Z]*x/.test(options)
    ? "unpack"
    : undefined;
}
