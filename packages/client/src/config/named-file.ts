import type { ConfigurationProblem } from "./configuration-error.ts";

/** The required content of a file. `text` means at least one character. */
export type FileContent =
  | "certificates"
  | "private key"
  | "audit policy"
  | "authentication configuration"
  | "webhook kubeconfig"
  | "text";

/** A file, and the field or flag that names it, for `checkNamedFiles`. */
export interface NamedFile extends Omit<ConfigurationProblem, "message"> {
  readonly file: string;
  readonly content: FileContent;
  /** For a private key: the file of its certificate. */
  readonly certificateFile?: string | undefined;
}
