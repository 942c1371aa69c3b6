import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { ociArchive } from "./busybox-images.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** The image for clusters as scripts/image-rootfs.mjs makes it: one layer. */
export function sluiceLayer(): Buffer {
  const rootfs = mkdtempSync(path.join(tmpdir(), "sluice-rootfs-"));
  try {
    execFileSync(process.execPath, [path.join(root, "scripts/image-rootfs.mjs"), rootfs]);
    return execFileSync(
      "tar",
      ["--create", "--sort=name", "--mtime=@0", "--numeric-owner", "--directory", rootfs, "."],
      { maxBuffer: 2 ** 30 },
    );
  } finally {
    rmSync(rootfs, { recursive: true, force: true });
  }
}

/** An archive in OCI layout. */
export function sluiceArchive(layer: Buffer, image: string): Buffer {
  return ociArchive(layer, { [image]: configOfDockerfile() });
}

/** What the last stage of the Dockerfile says, as an image's configuration. */
export function configOfDockerfile() {
  const stage =
    readFileSync(path.join(root, "Dockerfile"), "utf8")
      .split(/^FROM /m)
      .at(-1) ?? "";
  const of = (instruction: string) => new RegExp(`^${instruction} (.+)$`, "m").exec(stage)?.[1] ?? "";
  return {
    Env: [of("ENV")],
    User: of("USER"),
    WorkingDir: of("WORKDIR"),
    Entrypoint: JSON.parse(of("ENTRYPOINT")) as readonly string[],
    Cmd: JSON.parse(of("CMD")) as readonly string[],
  };
}
