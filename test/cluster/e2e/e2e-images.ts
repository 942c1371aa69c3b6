import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { ociArchive, rootFileSystem } from "../../real/containerd/busybox-images.ts";
import { tarArchive } from "../../real/containerd/tar.ts";

/** Busybox as Debian builds it has no printenv, which the test of in-cluster configurations calls. */
const PRINTENV = `#!/bin/sh
eval "echo \\"\\$$1\\""
`;

/** The images of Kubernetes' tests that can be built here: agnhost from the same modules, and busybox and pause from Debian's busybox. */
export async function e2eImagesArchive(programs: { e2e: string; agnhost: string }): Promise<Buffer> {
  const layer = tarArchive([
    ...rootFileSystem(),
    { name: "bin/printenv", kind: "file", content: Buffer.from(PRINTENV) },
    { name: "agnhost", kind: "file", content: readFileSync(programs.agnhost) },
  ]);
  const commands: Readonly<Record<string, object>> = {
    agnhost: { Entrypoint: ["/agnhost"], Cmd: ["pause"] },
    busybox: { Cmd: ["sh"] },
    pause: { Entrypoint: ["/bin/sleep", "infinity"] },
  };
  const { stdout } = await promisify(execFile)(programs.e2e, ["--list-images"]);
  const images = stdout.trim().split("\n");
  const configs = images.flatMap((image) => {
    const command = commands[/\/([^/:]+):/.exec(image)?.[1] ?? ""];
    return command === undefined
      ? []
      : [[image, { Env: ["PATH=/bin"], WorkingDir: "/", ...command }] as const];
  });
  return ociArchive(layer, Object.fromEntries(configs));
}
