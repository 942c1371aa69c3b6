// Builds Sluice as one file, a single executable application of the Node.js that runs this script
// (24 or newer), with the packages that it needs. The fake nodes' terminals are left out, because
// they need native code. Writes the licences of its contents beside it.
//
//   node scripts/build-binary.mjs [FILE]      default: dist/sluice; beside it FILE.LICENSES
//   node scripts/build-binary.mjs --archive FOLDER      also packs FOLDER/sluice-VERSION-OS-ARCH.tar.gz, for downloads and Krew
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { inject } from "postject";
import { licencesOf, root, writeBundle } from "./bundle.mjs";
import { compiledAssets } from "./compile-start.mjs";

const [, , first, archives] = process.argv;
const file = path.resolve(
  first === undefined || first === "--archive" ? path.join(root, "dist/sluice") : first,
);
if (Number.parseInt(process.versions.node, 10) < 24)
  throw new Error(`Node.js 24 or newer builds the binary, not ${process.version}`);

const scratch = mkdtempSync(path.join(tmpdir(), "sluice-binary-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));
const at = (name) => path.join(scratch, name);

const packages = await writeBundle(
  at("bin"),
  (name) => !name.startsWith("node:") && name !== "@lydell/node-pty",
);
const plots = ["uplot/dist/uPlot.iife.min.js", "uplot/dist/uPlot.min.css"];
const licences = licencesOf(packages.add("uplot"));
mkdirSync(path.dirname(file), { recursive: true });
writeFileSync(`${file}.LICENSES`, licences);

const loader = path.join(root, "scripts/binary-loader.js");
writeFileSync(at("main.js"), readFileSync(loader, "utf8").replace("PROGRAM", "sluice"));
const ofProject = ["package.json", ...roles().map((role) => `deploy/kustomize/${role}/manifests.yaml`)];
const assets = Object.fromEntries([
  ...readdirSync(at("bin")).map((name) => [name, path.join(at("bin"), name)]),
  ...plots.map((name) => [name, path.join(root, "node_modules", name)]),
  ...ofProject.map((name) => [name, path.join(root, name)]),
  ["loader.js", loader],
]);
// Symbols are a seventh of Node.js. They are stripped before the injection, which moves what strip
// looks for.
copyFileSync(process.execPath, at("node"));
chmodSync(at("node"), 0o755);
execFileSync("strip", [at("node")]);
// The first binary runs the session whose compiled code goes into the second one.
await writeBinary(at("first"), assets);
await writeBinary(file, { ...assets, ...(await compiledBySession()) });
console.log(`${file}: ${Math.round(statSync(file).size / 2 ** 20)} MiB, ${packages.size} packages`);

if (first === "--archive") {
  const { version } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
  const architecture = { x64: "amd64", arm64: "arm64" }[process.arch] ?? process.arch;
  const folder = path.resolve(archives ?? path.join(root, "dist"));
  mkdirSync(folder, { recursive: true });
  mkdirSync(at("archive"));
  for (const [from, name] of [
    [file, "sluice"],
    [`${file}.LICENSES`, "LICENSES"],
    [path.join(root, "LICENSE"), "LICENSE"],
  ])
    copyFileSync(from, at(`archive/${name}`));
  const archive = path.join(folder, `sluice-${version}-${process.platform}-${architecture}.tar.gz`);
  execFileSync("tar", [
    "-czf",
    archive,
    "--owner=0",
    "--group=0",
    "-C",
    at("archive"),
    "sluice",
    "LICENSE",
    "LICENSES",
  ]);
  console.log(archive);
}

async function writeBinary(to, assets) {
  const settings = { main: at("main.js"), output: at("blob"), assets, disableExperimentalSEAWarning: true };
  writeFileSync(at("sea.json"), JSON.stringify(settings));
  // The output matters only if this fails, and then the error contains it.
  execFileSync(process.execPath, ["--experimental-sea-config", at("sea.json")], { stdio: "pipe" });
  copyFileSync(at("node"), to);
  chmodSync(to, 0o755);
  await withoutNoteWarnings(() =>
    inject(to, "NODE_SEA_BLOB", readFileSync(at("blob")), {
      sentinelFuse: "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2",
    }),
  );
}

/** The code that V8 compiles for `sluice exec`, taken from one run against a demo. */
async function compiledBySession() {
  const demo = spawn(at("first"), ["demo", "--dir", at("demo")], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    let printed = "";
    for await (const part of demo.stdout) {
      printed += part;
      if (printed.includes("Stop with Ctrl-C")) break;
    }
    const kubeconfig = /^ready (.+)$/m.exec(printed)?.[1];
    if (kubeconfig === undefined) throw new Error(`the demo did not start: ${printed}`);
    return await compiledAssets({
      scratch,
      main: readFileSync(at("main.js"), "utf8"),
      assets,
      command: ["exec", "web", "--", "true"],
      env: { ...process.env, KUBECONFIG: kubeconfig },
    });
  } finally {
    const ended = once(demo, "close");
    demo.kill();
    await ended;
  }
}

/**
 * postject warns that stripped notes, which no program reads, have no name. Its other output is
 * printed.
 */
async function withoutNoteWarnings(work) {
  const { warn, error } = console;
  const filtered =
    (print) =>
    (...parts) => {
      if (!/Can't find string offset for section name '\.note/.test(parts.join(" "))) print(...parts);
    };
  console.warn = filtered(warn);
  console.error = filtered(error);
  try {
    await work();
  } finally {
    Object.assign(console, { warn, error });
  }
}

function roles() {
  return readdirSync(path.join(root, "deploy/kustomize"));
}
