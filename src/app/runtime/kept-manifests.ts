import { createHash } from "node:crypto";
import type { LastGoodManifests } from "../../cluster/manifest-source.ts";
import type { ManifestFile } from "../../cluster/manifests.ts";

/** The last manifests that some worker found right, in the primary: a worker that starts while they are wrong takes these. */
export class KeptManifests {
  #digest: string | undefined;
  #files: readonly ManifestFile[] | undefined;

  /** Undefined before any were kept. */
  get files(): readonly ManifestFile[] | undefined {
    return this.#files;
  }

  /** All workers read the same files; one of them sends them. */
  wants(digest: string): boolean {
    return digest !== this.#digest;
  }

  keep(files: readonly ManifestFile[]): void {
    this.#digest = digestOf(files);
    this.#files = files;
  }
}

/** How a worker reaches them. Rejections mean that the primary is gone. */
export interface KeptManifestsCalls {
  wants(digest: string): Promise<boolean>;
  keep(files: readonly ManifestFile[]): void;
  recall(): Promise<readonly ManifestFile[] | undefined>;
}

export function lastGoodManifests({ wants, keep, recall }: KeptManifestsCalls): LastGoodManifests {
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

function digestOf(files: readonly ManifestFile[]): string {
  const hash = createHash("sha256");
  for (const { name, text } of files) hash.update(`${name.length} ${text.length} ${name}${text}`);
  return hash.digest("base64");
}
