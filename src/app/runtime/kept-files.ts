import { createHash } from "node:crypto";
import type { NamedText } from "@sluice/client/internal/config/named-file-text";

/**
 * `manifests`: the cluster's. `named`: the certificates, keys, authorities, tokens and policies that
 * the configuration names.
 */
export type KeptKind = "manifests" | "named";

/**
 * The last files that a worker found valid, kept in the primary for workers that start while the files
 * are invalid.
 */
export class KeptFiles {
  #digest: string | undefined;
  #files: readonly NamedText[] | undefined;

  /** Undefined until the first files are kept. */
  get files(): readonly NamedText[] | undefined {
    return this.#files;
  }

  /** True if these files are new. All workers read the same files, so only one has to send them. */
  wants(digest: string): boolean {
    return digest !== this.#digest;
  }

  keep(files: readonly NamedText[]): void {
    this.#digest = digestOf(files);
    this.#files = files;
  }
}

/** How a worker reaches the primary's kept files. A rejection means that the primary has died. */
interface KeptFilesCalls {
  wants(digest: string): Promise<boolean>;
  keep(files: readonly NamedText[]): void;
  recall(): Promise<readonly NamedText[] | undefined>;
}

/** Valid files that outlive the process that read them. */
export interface LastGoodFiles {
  keep(files: readonly NamedText[]): void;
  /** Undefined if none were kept. */
  recall(): Promise<readonly NamedText[] | undefined>;
}

export function lastGoodFiles({ wants, keep, recall }: KeptFilesCalls): LastGoodFiles {
  return {
    keep: (files) => {
      wants(digestOf(files)).then(
        (isWanted) => {
          if (isWanted) keep(files);
        },
        () => {},
      );
    },
    recall,
  };
}

function digestOf(files: readonly NamedText[]): string {
  const hash = createHash("sha256");
  for (const { name, text } of files) hash.update(`${name.length} ${text.length} ${name}${text}`);
  return hash.digest("base64");
}
