const WORDS: Readonly<Record<string, (file: string) => string>> = {
  ENOENT: (file) => `${file}: no such file`,
  ENOTDIR: (file) => `${file}: no such file`,
  EACCES: (file) => `there is no permission for ${file}`,
  EPERM: (file) => `there is no permission for ${file}`,
  EISDIR: (file) => `${file} is a folder`,
  ESPIPE: (file) => `${file} is a named pipe`,
  ERR_FS_FILE_TOO_LARGE: (file) => `${file} is too large`,
};

/** A file is unusable for its purpose. The message is one line for the user. */
export class RecordingFileError extends Error {
  override readonly name = "RecordingFileError";

  /** Rewords the system's errors; returns any other error unchanged. */
  static of(error: unknown, file: string): unknown {
    if (!(error instanceof Error) || !("syscall" in error) || !("code" in error)) return error;
    const { code } = error as NodeJS.ErrnoException;
    const message = WORDS[code ?? ""]?.(file) ?? `${file} cannot be used: ${code}`;
    return new RecordingFileError(message, { cause: error });
  }
}
