// Makes the files of a release: the npm packages' archives, the chart, an SBOM (CycloneDX), Krew's
// manifest of the kubectl plugin and Homebrew's formula (if there are binaries), and the checksums
// of all. Downloads are from the repository $GITHUB_REPOSITORY; the chart uses the image $IMAGE
// with $DIGEST.
//
//   node scripts/release-files.mjs FOLDER                        after `npm run build`; binaries and the Debian package may lie there already
//   node scripts/release-files.mjs --dry-run [--skip binary,deb]    all of a release into a new folder, which it names and lists, with what cannot be made
//                                                                here and why; publishes nothing
//   node scripts/release-files.mjs --check TAG                   fails unless TAG is v and the version that packages, chart and a dated section of CHANGELOG.md have
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { buildChartArchive } from "./build-chart-archive.mjs";
import { dryRunParts, imageRow } from "./release-dry-run.mjs";
import { homebrewFormula, krewManifest } from "./release-manifests.mjs";
import {
  changelogProblem,
  manifestOf,
  packPackages,
  problemsOf,
  project,
  repositoryHome,
} from "./release-packages.mjs";

const { name, version } = manifestOf(".");
const SKIPPABLE = ["binary", "deb"];
const USAGE = "usage: node scripts/release-files.mjs FOLDER | --dry-run [--skip binary,deb] | --check TAG";
const { folder: named, isDryRun, skipped, tag } = commandOf(process.argv.slice(2));
if (tag !== undefined) {
  const log = readFileSync(path.join(project, "CHANGELOG.md"), "utf8");
  const problems = [...problemsOf(tag), changelogProblem(log, tag) ?? []].flat();
  for (const problem of problems) console.error(problem);
  process.exit(problems.length === 0 ? 0 : 1);
}

const folder = isDryRun ? mkdtempSync(path.join(tmpdir(), "sluice-release-")) : path.resolve(named);
mkdirSync(folder, { recursive: true });
const sumOf = (name) =>
  createHash("sha256")
    .update(readFileSync(path.join(folder, name)))
    .digest("hex");

packPackages(folder);
buildChartArchive(folder, process.env.IMAGE, process.env.DIGEST);
const missing = isDryRun ? [...dryRunParts(folder, skipped), imageRow()] : [];
const bill = JSON.parse(
  execFileSync("npm", ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only"], {
    cwd: project,
    encoding: "utf8",
    maxBuffer: 1 << 27,
    stdio: ["ignore", "pipe", "inherit"],
  }),
);
// `--omit dev` would also leave out packages that both a dependency and a development dependency
// need.
const { packages } = JSON.parse(readFileSync(path.join(project, "package-lock.json"), "utf8"));
const installed = new Set(
  Object.entries(packages)
    .filter(([place, { dev, link }]) => place.includes("node_modules/") && dev !== true && link !== true)
    .map(([place, found]) => `${place.slice(place.lastIndexOf("node_modules/") + 13)}@${found.version}`),
);
bill.components = bill.components.filter((component) => installed.has(component["bom-ref"]));
bill.dependencies = bill.dependencies
  .filter(({ ref }) => installed.has(ref) || ref === bill.metadata.component["bom-ref"])
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => installed.has(each)) }));
// npm names the component after the checkout's folder.
bill.metadata.component.name = name;
writeFileSync(path.join(folder, `sluice-${version}.cdx.json`), `${JSON.stringify(bill, undefined, 2)}\n`);

const archive = new RegExp(
  `^sluice-${version.replaceAll(".", "\\.")}-(linux|darwin)-(amd64|arm64)\\.tar\\.gz$`,
);
const platforms = readdirSync(folder)
  .toSorted()
  .flatMap((file) => {
    const [, os, arch] = archive.exec(file) ?? [];
    return os === undefined ? [] : [{ file, os, arch, sum: sumOf(file) }];
  });
const home = repositoryHome();
if (platforms.length > 0 && home !== undefined) {
  writeFileSync(path.join(folder, "krew.yaml"), krewManifest({ home, version, platforms }));
  writeFileSync(path.join(folder, "sluice.rb"), homebrewFormula({ home, version, platforms }));
} else if (isDryRun) {
  const why =
    home === undefined ? "no repository: set GITHUB_REPOSITORY" : "they name binaries, and there are none";
  missing.push(["krew.yaml, sluice.rb", why]);
}

const names = readdirSync(folder)
  .filter((file) => file !== "SHA256SUMS")
  .toSorted();
writeFileSync(path.join(folder, "SHA256SUMS"), names.map((file) => `${sumOf(file)}  ${file}\n`).join(""));

if (isDryRun) {
  console.log(folder);
  for (const file of names)
    console.log([file, statSync(path.join(folder, file)).size, sumOf(file)].join("  "));
  console.log(`\nNot made here\n${missing.map((row) => row.join(": ")).join("\n")}`);
  const chart = process.env.IMAGE
    ? `${process.env.IMAGE.toLowerCase()}${process.env.DIGEST ? `@${process.env.DIGEST}` : `:${version}`}`
    : "the chart's default, for IMAGE is not set";
  console.log(`\nThe chart's image: ${chart}`);
}

/**
 * One of the three ways to call the script. Anything else ends it with one line and exit code 2.
 */
function commandOf(args) {
  const refuse = (problem) => {
    console.error(`${problem}; ${USAGE}`);
    process.exit(2);
  };
  const options = { "dry-run": { type: "boolean" }, skip: { type: "string" }, check: { type: "string" } };
  let values, positionals;
  try {
    ({ values, positionals } = parseArgs({ args, options, strict: true, allowPositionals: true }));
  } catch (error) {
    // Node's further sentences explain how to pass a positional that looks like a flag.
    return refuse(error.message.split(". ")[0]);
  }
  const { "dry-run": isDryRun = false, skip, check: tag } = values;
  if (positionals.length + Number(isDryRun) + Number(tag !== undefined) !== 1)
    refuse("one of FOLDER, --dry-run and --check is needed");
  if (skip !== undefined && !isDryRun) refuse("--skip is for --dry-run");
  const skipped = skip?.split(",") ?? [];
  const unknown = skipped.find((part) => !SKIPPABLE.includes(part));
  if (unknown !== undefined) refuse(`--skip takes ${SKIPPABLE.join(" and ")}, not ${unknown}`);
  return { folder: positionals[0], isDryRun, skipped, tag };
}
