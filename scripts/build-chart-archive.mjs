// Packs the chart as helm does, reproducibly, with the released image as its default: by digest if
// one is known, else by the version's tag.
//
//   IMAGE=ghcr.io/OWNER/NAME DIGEST=sha256:... node scripts/build-chart-archive.mjs FOLDER      writes FOLDER/sluice-chart-VERSION.tgz, prints its path
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/**
 * `image` is REGISTRY/REPOSITORY; without it the chart keeps its own default. Throws for another
 * form, and for a digest without an image.
 */
export function buildChartArchive(folder, image, digest) {
  const { version } = JSON.parse(readFileSync(path.join(project, "package.json"), "utf8"));
  const scratch = mkdtempSync(path.join(tmpdir(), "sluice-chart-"));
  try {
    const chart = path.join(scratch, "sluice");
    cpSync(path.join(project, "deploy/chart"), chart, { recursive: true, dereference: true });
    rmSync(path.join(chart, "ci"), { recursive: true, force: true });
    const values = path.join(chart, "values.yaml");
    writeFileSync(values, withImage(readFileSync(values, "utf8"), image, digest));
    const flags = [
      "--sort=name",
      "--owner=0",
      "--group=0",
      "--numeric-owner",
      "--mtime=@0",
      "--mode=u=rwX,go=rX",
    ];
    const tar = execFileSync("tar", ["-c", ...flags, "-C", scratch, "sluice"], { maxBuffer: 1 << 26 });
    const file = path.join(folder, `sluice-chart-${version}.tgz`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, gzipSync(tar, { level: 9 }));
    return file;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The image's tag is the version, unless a digest is given. */
const REPOSITORY = /^[a-z0-9.-]+(?::\d+)?(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+$/;

function withImage(values, image, digest) {
  if (!image) {
    if (digest) throw new Error("a digest without an image: set IMAGE");
    return values;
  }
  if (!REPOSITORY.test(image.toLowerCase()))
    throw new Error(`IMAGE is REGISTRY/REPOSITORY without tag or digest, not ${image}`);
  if (digest && !/^sha256:[0-9a-f]{64}$/.test(digest)) throw new Error(`${digest} is not a digest`);
  const [registry, ...repository] = image.toLowerCase().split("/");
  const lines = { registry, repository: repository.join("/"), ...(digest && { digest }) };
  let [before, section, after] = /^([\s\S]*\nimage:\n)((?: .*\n)+)([\s\S]*)$/.exec(values)?.slice(1) ?? [];
  if (section === undefined) throw new Error("values.yaml has no section image");
  for (const [key, value] of Object.entries(lines)) {
    const line = new RegExp(`^  ${key}: .*$`, "m");
    if (!line.test(section)) throw new Error(`values.yaml has no image.${key}`);
    section = section.replace(line, `  ${key}: ${value}`);
  }
  return before + section + after;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , folder] = process.argv;
  if (folder === undefined) {
    console.error("usage: IMAGE=REGISTRY/NAME DIGEST=sha256:... node scripts/build-chart-archive.mjs FOLDER");
    process.exit(2);
  }
  console.log(buildChartArchive(path.resolve(folder), process.env.IMAGE, process.env.DIGEST));
}
