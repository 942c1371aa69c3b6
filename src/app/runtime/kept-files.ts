import { createHash } from "node:crypto";
import type { NamedText } from "../../config/named-file-text.ts";

/** `manifests`: the cluster's. `named`: certificates, keys, authorities, tokens and policies that the configuration names. */
export type KeptKind = "manifests" | "named";

/** The last files that some worker found right, in the primary: a worker that starts while they are wrong takes these. */
export class KeptFiles {
  #digest: string | undefined;
  #files: readonly NamedText[] | undefined;

  /** Undefined before any were kept. */
  get files(): readonly NamedText[] | undefined {
    return this.#files;
  }

  /** All workers read the same files; one of them sends them. */
  wants(digest: string): boolean {
    return digest !== this.#digest;
  }

  keep(files: readonly NamedText[]): void {
    this.#digest = digestOf(files);
    this.#files = files;
  }
}

/** How a worker reaches them. Rejections mean that the primary is gone. */
export interface KeptFilesCalls {
  wants(digest: string): Promise<boolean>;
  keep(files: readonly NamedText[]): void;
  recall(): Promise<readonly NamedText[] | undefined>;
}

/** Files that were right, kept beyond the process that read them. */
export interface LastGoodFiles {
  keep(files: readonly NamedText[]): void;
  /** Undefined when none were kept. */
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
