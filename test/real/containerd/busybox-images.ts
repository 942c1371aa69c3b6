import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { type TarEntry, tarArchive } from "./tar.ts";

export const BUSYBOX_IMAGE = "localhost/busybox:test";
export const PAUSE_IMAGE = "localhost/pause:test";
/** What busybox's httpd serves from `/www`. */
export const INDEX_PAGE = "hello from inside the pod\n";

const busyboxBinary = "/bin/busybox";

/** An archive in OCI layout with two images of one layer: a shell with every busybox applet, and one that only waits. */
export function busyboxImagesArchive(): Buffer {
  const layer = tarArchive(rootFileSystem());
  const pause = { Env: ["PATH=/bin"], Entrypoint: ["/bin/sleep", "infinity"], WorkingDir: "/" };
  const shell = { Env: ["PATH=/bin"], Cmd: ["/bin/sh"], WorkingDir: "/" };
  return ociArchive(layer, { [BUSYBOX_IMAGE]: shell, [PAUSE_IMAGE]: pause });
}

/** A root with every applet of busybox. */
export function rootFileSystem(): TarEntry[] {
  const applets = execFileSync(busyboxBinary, ["--list"], { encoding: "utf8" }).split("\n").filter(Boolean);
  return [
    ...["bin/", "etc/", "root/", "www/"].map((name): TarEntry => ({ name, kind: "directory" })),
    { name: "tmp/", kind: "directory", mode: 0o1777 },
    { name: "bin/busybox", kind: "file", content: readFileSync(busyboxBinary) },
    ...applets
      .filter((applet) => applet !== "busybox")
      .map((applet): TarEntry => ({ name: `bin/${applet}`, kind: "symlink", linkTarget: "busybox" })),
    {
      name: "etc/passwd",
      kind: "file",
      mode: 0o644,
      content: Buffer.from("root:x:0:0:root:/root:/bin/sh\n"),
    },
    { name: "etc/group", kind: "file", mode: 0o644, content: Buffer.from("root:x:0:\n") },
    { name: "www/index.html", kind: "file", mode: 0o644, content: Buffer.from(INDEX_PAGE) },
  ];
}

interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
}

/** OCI image layout 1.0: blobs by digest, an index that names them. containerd takes an image's name from the annotation. */
export function ociArchive(layer: Buffer, configs: Readonly<Record<string, object>>): Buffer {
  const blobs = new Map<string, Buffer>();
  const addBlob = (mediaType: string, content: Buffer): Descriptor => {
    const hash = createHash("sha256").update(content).digest("hex");
    blobs.set(hash, content);
    return {
      mediaType: `application/vnd.oci.image.${mediaType}`,
      digest: `sha256:${hash}`,
      size: content.length,
    };
  };
  const platform = { architecture: architectureName(), os: "linux" };
  const layerDescriptor = addBlob("layer.v1.tar", layer);
  const manifests = Object.entries(configs).map(([name, config]) => {
    const rootfs = { type: "layers", diff_ids: [layerDescriptor.digest] };
    const configDescriptor = addBlob(
      "config.v1+json",
      json({ ...platform, config, rootfs, history: [{ created_by: "test" }] }),
    );
    const mediaType = "application/vnd.oci.image.manifest.v1+json";
    const manifest = json({
      schemaVersion: 2,
      mediaType,
      config: configDescriptor,
      layers: [layerDescriptor],
    });
    const annotations = {
      "io.containerd.image.name": name,
      "org.opencontainers.image.ref.name": name.split(":").at(-1),
    };
    return { ...addBlob("manifest.v1+json", manifest), platform, annotations };
  });
  return tarArchive([
    { name: "oci-layout", kind: "file", content: json({ imageLayoutVersion: "1.0.0" }) },
    { name: "index.json", kind: "file", content: json({ schemaVersion: 2, manifests }) },
    ...Array.from(
      blobs,
      ([hash, content]): TarEntry => ({ name: `blobs/sha256/${hash}`, kind: "file", content }),
    ),
  ]);
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

/** Go's name for this machine's architecture. */
function architectureName(): string {
  return process.arch === "x64" ? "amd64" : process.arch;
}
