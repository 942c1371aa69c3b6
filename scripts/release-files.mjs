// The files of a release, beside the Debian package and the single binaries: the npm packages' archives, an SBOM (CycloneDX), the manifest of kubectl's
// plugin for Krew and the formula for Homebrew (where there are binaries), and the checksums of all. $GITHUB_REPOSITORY is the owner and name that
// downloads are of.
//
//   node scripts/release-files.mjs FOLDER          after `npm run build`
//   node scripts/release-files.mjs --dry-run       the same into a new folder, which it names and lists; publishes nothing
//   node scripts/release-files.mjs --check TAG     fails unless TAG is v and the version that all packages have, and they name their repository,
//                                                  without which npm refuses provenance
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const manifestOf = (folder) => JSON.parse(readFileSync(path.join(project, folder, "package.json"), "utf8"));
const { name, version } = manifestOf(".");
const folders = [".", ...readdirSync(path.join(project, "packages")).map((name) => `packages/${name}`)];
const isPublished = (folder) => folder === "." || manifestOf(folder).private !== true;

const [first, tag] = process.argv.slice(2);
if (first === "--check") {
  const wrong = folders.filter((folder) => `v${manifestOf(folder).version}` !== tag);
  for (const folder of wrong)
    console.error(`${folder}: version ${manifestOf(folder).version} is not that of ${tag}`);
  const nameless = folders.filter(
    (folder) => isPublished(folder) && manifestOf(folder).repository === undefined,
  );
  for (const folder of nameless) console.error(`${folder}: package.json has no repository`);
  process.exit(wrong.length + nameless.length === 0 ? 0 : 1);
}
if (first === undefined) {
  console.error("usage: node scripts/release-files.mjs FOLDER | --dry-run | --check TAG");
  process.exit(2);
}

const isDryRun = first === "--dry-run";
const folder = isDryRun ? mkdtempSync(path.join(tmpdir(), "sluice-release-")) : path.resolve(first);
mkdirSync(folder, { recursive: true });
const npm = (...arguments_) =>
  execFileSync("npm", arguments_, {
    cwd: project,
    encoding: "utf8",
    maxBuffer: 1 << 27,
    stdio: ["ignore", "pipe", "inherit"],
  });
const sumOf = (name) =>
  createHash("sha256")
    .update(readFileSync(path.join(folder, name)))
    .digest("hex");

const staged = mkdtempSync(path.join(tmpdir(), "sluice-package-"));
process.on("exit", () => rmSync(staged, { recursive: true, force: true }));
execFileSync(process.execPath, [path.join(project, "scripts/stage-package.mjs"), staged]);
const libraries = ["protocols", ...folders.slice(1)].filter(isPublished);
for (const packed of [staged, ...libraries.map((library) => `./${library}`)])
  npm("pack", packed, "--ignore-scripts", "--loglevel=error", "--pack-destination", folder);
const bill = JSON.parse(npm("sbom", "--sbom-format", "cyclonedx", "--package-lock-only"));
// `--omit dev` would also leave out what a dependency of ours and one for development share.
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
// npm names the component by the folder of the checkout.
bill.metadata.component.name = name;
writeFileSync(path.join(folder, `sluice-${version}.cdx.json`), `${JSON.stringify(bill, undefined, 2)}\n`);

const archive = new RegExp(
  `^sluice-${version.replaceAll(".", "\\.")}-(linux|darwin)-(amd64|arm64)\\.tar\\.gz$`,
);
const platforms = readdirSync(folder)
  .toSorted()
  .flatMap((file) => {
    const [, os, arch] = archive.exec(file) ?? [];
    return os === undefined ? [] : [{ file, os, arch }];
  });
const { GITHUB_REPOSITORY: repository } = process.env;
if (platforms.length > 0 && repository !== undefined) {
  const home = `https://github.com/${repository}`;
  writeFileSync(path.join(folder, "krew.yaml"), krewManifest(home, platforms));
  writeFileSync(path.join(folder, "sluice.rb"), homebrewFormula(home, platforms));
}

const names = readdirSync(folder).filter((file) => file !== "SHA256SUMS");
writeFileSync(
  path.join(folder, "SHA256SUMS"),
  names
    .toSorted()
    .map((file) => `${sumOf(file)}  ${file}\n`)
    .join(""),
);

if (isDryRun) {
  const rows = names.toSorted().map((file) => [file, statSync(path.join(folder, file)).size, sumOf(file)]);
  console.log(`${folder}\n${rows.map((row) => row.join("  ")).join("\n")}`);
}

/** The formula for a tap, with the Linux and macOS binaries that are there. */
function homebrewFormula(home, platforms) {
  const system = { linux: "linux", darwin: "macos" };
  const processor = { amd64: "intel", arm64: "arm" };
  const blocks = platforms.map(
    ({ file, os, arch }) => `  on_${system[os]} do
    on_${processor[arch]} do
      url "${home}/releases/download/v${version}/${file}"
      sha256 "${sumOf(file)}"
    end
  end
`,
  );
  return `class Sluice < Formula
  desc "Streaming front door of Kubernetes nodes"
  homepage "${home}"
  version "${version}"
  license "Apache-2.0"

${blocks.join("\n")}
  def install
    bin.install "sluice"
    bin.install_symlink bin/"sluice" => "kubectl-sluice"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/sluice --version")
  end
end
`;
}

/** The manifest for Krew's index, which has it as plugins/sluice.yaml. JSON is YAML. */
function krewManifest(home, platforms) {
  const manifest = {
    apiVersion: "krew.googlecontainertools.github.com/v1alpha2",
    kind: "Plugin",
    metadata: { name: "sluice" },
    spec: {
      version: `v${version}`,
      homepage: home,
      shortDescription: "Resumable exec, cp and port-forward",
      description:
        "exec, attach, cp and port-forward over WebSocket or SPDY; against a Sluice gateway, sessions survive lost connections.\nAlso the gateway itself, load and conformance tests: kubectl sluice --help.\n",
      caveats:
        "For completion, link the plugin as kubectl_complete-sluice in a folder of $PATH:\n  ln -s ~/.krew/bin/kubectl-sluice ~/.local/bin/kubectl_complete-sluice\n",
      platforms: platforms.map(({ file, os, arch }) => ({
        selector: { matchLabels: { os, arch } },
        uri: `${home}/releases/download/v${version}/${file}`,
        sha256: sumOf(file),
        files: ["sluice", "LICENSE", "LICENSES"].map((from) => ({ from, to: "." })),
        bin: "sluice",
      })),
    },
  };
  return `${JSON.stringify(manifest, undefined, 2)}\n`;
}
