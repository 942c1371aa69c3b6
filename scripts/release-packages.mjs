// The npm packages of a release and their archives. Every package.json is private, so that no `npm
// publish` in the checkout publishes by accident. The archives are not, and name the repository
// from the variable $GITHUB_REPOSITORY, owner and name.
//
//   node scripts/release-packages.mjs --publish TAG [npm's flags]      publishes those that the registry lacks; run again, it completes
//   node scripts/release-packages.mjs --stage SOURCE FOLDER            the files of one, as they are published
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
/** Each package depends only on those before it. */
const PUBLISHED = ["protocols", "packages/client", "."];

export const manifestOf = (folder) =>
  JSON.parse(readFileSync(path.join(project, folder, "package.json"), "utf8"));

/** The faults of a release with this tag, one a line. */
export function problemsOf(tag) {
  const folders = [
    ".",
    "protocols",
    ...readdirSync(path.join(project, "packages")).map((name) => `packages/${name}`),
  ];
  const wrong = folders
    .filter((folder) => `v${manifestOf(folder).version}` !== tag)
    .map((folder) => `${folder}: version ${manifestOf(folder).version} is not that of ${tag}`);
  const chart = readFileSync(path.join(project, "deploy/chart/Chart.yaml"), "utf8");
  const [, chartVersion] = /^version: (\S+)$/m.exec(chart) ?? [];
  if (`v${chartVersion}` !== tag) wrong.push(`deploy/chart: version ${chartVersion} is not that of ${tag}`);
  if (repositoryHome() === undefined)
    wrong.push("no repository: set GITHUB_REPOSITORY, without which npm refuses provenance");
  return wrong;
}

/**
 * The fault of a changelog's text in a release with this tag: its section needs a date. Undefined
 * if there is none.
 */
export function changelogProblem(text, tag) {
  const version = tag.slice(1);
  const heading = `"## ${version}, YYYY-MM-DD"`;
  const titles = text.split("\n").filter((line) => line.startsWith("## "));
  const title = titles.find((line) => line.split(/[ ,]+/)[1] === version);
  if (title === undefined) return `CHANGELOG.md: no section for ${tag}; its heading is ${heading}`;
  const [, date] = /^## [^ ,]+, (\d{4}-\d{2}-\d{2})$/.exec(title) ?? [];
  if (date !== undefined && !Number.isNaN(Date.parse(date))) return undefined;
  return `CHANGELOG.md: "${title}" has no date; write ${heading} and commit it before the tag`;
}

/** The repository's address; undefined if the variable is not set. */
export function repositoryHome() {
  const { GITHUB_REPOSITORY: repository, GITHUB_SERVER_URL: server = "https://github.com" } = process.env;
  return repository ? `${server}/${repository}` : undefined;
}

/**
 * Packs every published package into the folder, with one npm. Returns the archives' manifests in
 * order of publication.
 */
export function packPackages(folder) {
  const scratch = mkdtempSync(path.join(tmpdir(), "sluice-packages-"));
  try {
    const staged = PUBLISHED.map((source, index) => {
      const target = path.join(scratch, String(index));
      return { target, manifest: stage(source, target) };
    });
    const flags = ["--ignore-scripts", "--json", "--loglevel=error", "--pack-destination", folder];
    const printed = execFileSync("npm", ["pack", ...staged.map(({ target }) => target), ...flags], {
      cwd: project,
      encoding: "utf8",
      maxBuffer: 1 << 26,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const packed = new Map(JSON.parse(printed).map(({ name, filename }) => [name, filename]));
    return staged.map(({ manifest }) => {
      // Old versions of npm print the scope's slash, but write a hyphen.
      const filename = packed.get(manifest.name).replace("@", "").replace("/", "-");
      return { manifest, file: path.join(folder, filename) };
    });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** A package's manifest as it is published. */
function publishedManifest(source) {
  const {
    private: _,
    workspaces: __,
    scripts: ___,
    devDependencies: ____,
    allowScripts: _____,
    publishConfig,
    ...kept
  } = manifestOf(source);
  const home = repositoryHome();
  return {
    ...kept,
    ...publishConfig,
    ...(home && {
      homepage: `${home}#readme`,
      bugs: `${home}/issues`,
      repository: {
        type: "git",
        url: `git+${home}.git`,
        ...(source !== "." && { directory: source }),
      },
    }),
    ...commit(),
  };
}

/** Copies a package's files, and its manifest as it is published, which it returns. */
function stage(source, folder) {
  const published = publishedManifest(source);
  mkdirSync(folder, { recursive: true });
  for (const file of [...published.files, "README.md", "LICENSE"]) {
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    cpSync(path.join(project, source, file), path.join(folder, file), { recursive: true });
  }
  writeFileSync(path.join(folder, "package.json"), `${JSON.stringify(published, undefined, 2)}\n`);
  return published;
}

/** Lets a second run recognize that the published package is from the same commit. */
function commit() {
  const { status, stdout } = spawnSync("git", ["rev-parse", "HEAD"], { cwd: project, encoding: "utf8" });
  return status === 0 ? { gitHead: stdout.trim() } : {};
}

/**
 * `none`, `same` or `other`: what the registry has of this version. Throws if it does not answer.
 */
function publishedState({ name, version, gitHead }) {
  const { status, stdout, stderr } = spawnSync("npm", ["view", `${name}@${version}`, "--json"], {
    encoding: "utf8",
  });
  if (status !== 0) {
    if (/\bE404\b/.test(`${stdout}${stderr}`)) return "none";
    throw new Error(`the registry does not say whether it has ${name}@${version}: ${stderr.trim()}`);
  }
  // npm prints nothing if the package lacks this version.
  if (stdout.trim() === "") return "none";
  return JSON.parse(stdout).gitHead === gitHead ? "same" : "other";
}

/**
 * Why a package of this name cannot be ours; undefined if it may be. A name is ours if it is free,
 * or if its newest version names this repository.
 */
function strangerOf({ name, repository }) {
  const { status, stdout, stderr } = spawnSync("npm", ["view", name, "repository.url", "--json"], {
    encoding: "utf8",
  });
  if (status !== 0 && /\bE404\b/.test(`${stdout}${stderr}`)) return undefined;
  if (status !== 0) throw new Error(`the registry does not say whose ${name} is: ${stderr.trim()}`);
  const url = stdout.trim() === "" ? "no repository" : JSON.parse(stdout);
  if (url.toLowerCase() === repository.url.toLowerCase()) return undefined;
  return `${name} is taken: its package names ${url}, not ${repository.url}; choose another name`;
}

/** Publishes what the registry lacks, if it refuses none of the names. Returns the exit code. */
function publish(tag, flags) {
  const problems = problemsOf(tag);
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) return 1;
  // Asked of all before the first is published: a release with one name missing is none.
  const strangers = PUBLISHED.flatMap((source) => strangerOf(publishedManifest(source)) ?? []);
  for (const stranger of strangers) console.error(stranger);
  if (strangers.length > 0) return 1;
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-publish-"));
  try {
    const packed = packPackages(folder);
    return packed.every(({ manifest, file }) => isPublished(manifest, file, flags)) ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Publishes the package unless it is there. Says what happened; false if it is not published. */
function isPublished(manifest, file, flags) {
  const is = `${manifest.name}@${manifest.version}`;
  const state = publishedState(manifest);
  if (state === "other") {
    console.error(`${is} is published from another commit: a version is never replaced, tag a new one`);
    return false;
  }
  if (state === "same") {
    console.log(`${is} is published already`);
    return true;
  }
  const args = ["publish", file, "--ignore-scripts", "--access", "public", ...flags];
  const { status, stderr } = spawnSync("npm", args, {
    encoding: "utf8",
    maxBuffer: 1 << 26,
    stdio: ["inherit", "inherit", "pipe"],
  });
  process.stderr.write(stderr);
  if (status === 0) {
    console.log(`${is} is published`);
    return true;
  }
  const isRefused = /\bE40[1-4]\b/.test(stderr) && !/previously published|over the existing/.test(stderr);
  console.error(
    isRefused
      ? `${is} is not published: the registry refuses it to this account. Its scope belongs to another, or does not trust this workflow: CONTRIBUTING.md, "Releases"`
      : `${is} is not published: run this again, it skips those that are`,
  );
  return false;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [flag, first, ...more] = process.argv.slice(2);
  if (flag === "--publish" && first !== undefined) process.exit(publish(first, more));
  if (flag === "--stage" && PUBLISHED.includes(first) && more.length === 1)
    stage(first, path.resolve(more[0]));
  else {
    console.error("usage: node scripts/release-packages.mjs --publish TAG [FLAGS] | --stage SOURCE FOLDER");
    process.exit(2);
  }
}
