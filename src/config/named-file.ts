import type { ConfigurationProblem } from "./configuration-error.ts";

/** What a file must hold. `text`: at least one character. */
export type FileContent =
  | "certificates"
  | "private key"
  | "audit policy"
  | "authentication configuration"
  | "webhook kubeconfig"
  | "text";

/** A file, and the field or flag that names it; `checkNamedFiles` reads it. */
export interface NamedFile extends Omit<ConfigurationProblem, "message"> {
  readonly file: string;
  readonly content: FileContent;
  /** Of a private key: the file of the certificate that it belongs to. */
  readonly certificateFile?: string | undefined;
}
