// Writes the files of the container image to a folder: a Node.js with the libraries that it loads,
// this program in one bundle with its packages, and the few files of /etc that they read. No shell,
// no package manager. Run it as root, so that the image's files belong to root.
//
//   node scripts/image-rootfs.mjs FOLDER [NODE]      NODE: the binary to take; the one that runs this if absent
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, cpSync, mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { licencesOf, root, writeBundle } from "./bundle.mjs";

/** The user that the image runs as: a number, so that Kubernetes can check runAsNonRoot. */
const USER = 1_000;
/**
 * Left out of the image: terminals need native code, and loads of plain HTTP and their reports are
 * for users' own machines.
 */
const LEFT_OUT = new Set(["@lydell/node-pty", "autocannon"]);

const [folder, node = process.execPath] = process.argv.slice(2);
if (folder === undefined) {
  console.error("usage: node scripts/image-rootfs.mjs FOLDER [NODE]");
  process.exit(2);
}
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
const output = (program, ...arguments_) =>
  execFileSync(program, arguments_, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });

rmSync(folder, { recursive: true, force: true });
directory("/");
copy(realpathSync(node), "/usr/bin/node");
// Symbols are a seventh of it, and have no use here.
execFileSync("strip", [at("/usr/bin/node")]);
chmodSync(at("/usr/bin/node"), 0o755);
for (const [, library] of output("ldd", node).matchAll(/(?:=> |^\s*)(\/\S+)/gm))
  copy(realpathSync(library), library);

for (const name of ["package.json", "LICENSE"]) copy(path.join(root, name), `/app/${name}`);
const packages = await writeBundle(
  at("/app/dist/bin"),
  (name) => !name.startsWith("node:") && !LEFT_OUT.has(name),
);
writeFileSync(at("/app/dist/bin/LICENSES"), licencesOf(packages));

directory("/etc");
writeFileSync(
  at("/etc/passwd"),
  `root:x:0:0:root:/:/sbin/nologin\nsluice:x:${USER}:${USER}:sluice:/:/sbin/nologin\n`,
);
writeFileSync(at("/etc/group"), `root:x:0:\nsluice:x:${USER}:\n`);
writeFileSync(at("/etc/nsswitch.conf"), "hosts: files dns\n");
directory("/etc/sluice");
// A volume that is mounted here belongs to this user.
directory("/var/lib/sluice", 0o755, USER);
directory("/tmp", 0o1777);
