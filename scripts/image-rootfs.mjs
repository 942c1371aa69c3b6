// Puts the files of the container image into a folder: a Node.js with the libraries that it loads, this program as built, and the few files of /etc
// that they read. No shell, no package manager. As root, so that the files of the image belong to root.
//
//   node scripts/image-rootfs.mjs FOLDER [NODE]      NODE: the binary to take; the one that runs this if absent
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** Whom the image runs as: by number, so that Kubernetes can check runAsNonRoot. */
const USER = 1_000;
const AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt";

/**
 * Of the optional packages: container runtimes, the front door's own certificate, the quota store, traces. Terminals and reports of load are
 * for people's machines.
 */
const OPTIONAL = [
  ...["@grpc/grpc-js", "@grpc/proto-loader", "selfsigned", "iovalkey", "@opentelemetry/api"],
  ...["@opentelemetry/exporter-trace-otlp-http", "@opentelemetry/resources", "@opentelemetry/sdk-trace-base"],
];
/** What no program reads when it runs: documents, types, source maps, tests, and the binaries of another JavaScript runtime. */
const UNREAD = /\.(md|markdown|map|d\.[cm]?ts)$|\/(tests?|docs|examples?|benchmarks?|prebuilds)$/;

const [folder, node = process.execPath] = process.argv.slice(2);
if (folder === undefined) {
  console.error("usage: node scripts/image-rootfs.mjs FOLDER [NODE]");
  process.exit(2);
}
const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const at = (file) => path.join(folder, file);

const directory = (name, mode = 0o755, owner = 0) => {
  mkdirSync(at(name), { recursive: true });
  chmodSync(at(name), mode);
  chownSync(at(name), owner, owner);
};
const copy = (from, to = from) => {
  mkdirSync(path.dirname(at(to)), { recursive: true });
  cpSync(from, at(to), { recursive: true, dereference: true });
};
const copyProgram = (from, to) => {
  const filter = (name) => !UNREAD.test(name.slice(from.length));
  cpSync(from, at(to), { recursive: true, dereference: true, filter });
};
const output = (program, ...arguments_) =>
  execFileSync(program, arguments_, { cwd: project, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });

rmSync(folder, { recursive: true, force: true });
directory("/");
copy(realpathSync(node), "/usr/bin/node");
// Symbols are a seventh of it, and of no use to anybody here.
execFileSync("strip", [at("/usr/bin/node")]);
chmodSync(at("/usr/bin/node"), 0o755);
for (const [, library] of output("ldd", node).matchAll(/(?:=> |^\s*)(\/\S+)/gm))
  copy(realpathSync(library), library);

for (const name of ["package.json", "LICENSE", "dist/bin"])
  copyProgram(path.join(project, name), `/app/${name}`);
for (const name of packagesOf(project, [...Object.keys(manifestOf(project).dependencies), ...OPTIONAL])) {
  copyProgram(path.join(project, name), `/app/${name}`);
}

directory("/etc");
writeFileSync(
  at("/etc/passwd"),
  `root:x:0:0:root:/:/sbin/nologin\nsluice:x:${USER}:${USER}:sluice:/:/sbin/nologin\n`,
);
writeFileSync(at("/etc/group"), `root:x:0:\nsluice:x:${USER}:\n`);
writeFileSync(at("/etc/nsswitch.conf"), "hosts: files dns\n");
if (existsSync(AUTHORITIES)) copy(realpathSync(AUTHORITIES), AUTHORITIES);
directory("/etc/sluice");
// A volume that is mounted here belongs to the user.
directory("/var/lib/sluice", 0o755, USER);
directory("/tmp", 0o1777);

function manifestOf(at) {
  return JSON.parse(readFileSync(path.join(at, "package.json"), "utf8"));
}

/** Folders of packages and of what they depend on, from the project's, as Node.js would find them. */
function packagesOf(from, names, found = new Set()) {
  for (const name of names) {
    let place = from;
    while (!existsSync(path.join(place, "node_modules", name))) {
      if (place === project) throw new Error(`${name} is not installed: npm ci`);
      place = path.dirname(place);
    }
    const at = path.join(place, "node_modules", name);
    if (name.startsWith("@types/")) continue;
    const relative = path.relative(project, at);
    if (found.has(relative)) continue;
    found.add(relative);
    packagesOf(at, Object.keys(manifestOf(at).dependencies ?? {}), found);
  }
  return found;
}
