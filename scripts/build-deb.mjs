// Builds a Debian package from the result of `npm run build`, with its own Node.js, because no
// Debian release has one that is new enough. Run it as root, so that the files belong to root.
//
//   node scripts/build-deb.mjs [FOLDER] [COMPRESSION]      writes FOLDER/sluice_VERSION_ARCH.deb (default: dist/deb, xz) and prints its path
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const { version, description } = JSON.parse(readFileSync(path.join(project, "package.json"), "utf8"));
const [, , wanted, compression = "xz"] = process.argv;
const folder = path.resolve(wanted ?? path.join(project, "dist/deb"));
const architecture = { x64: "amd64", arm64: "arm64" }[process.arch];
if (architecture === undefined) throw new Error(`no Debian architecture is known for ${process.arch}`);

const scratch = mkdtempSync(path.join(tmpdir(), "sluice-deb-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));
const root = path.join(scratch, "root");
const image = path.join(scratch, "image");
const LIBRARY = "/usr/lib/sluice";
const DOCS = "/usr/share/doc/sluice";
const write = (name, content, mode = 0o644) => {
  const file = path.join(root, name);
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o755 });
  writeFileSync(file, content, { mode });
  chmodSync(file, mode);
};
const read = (name) => readFileSync(path.join(project, name));
const zipped = (content) => gzipSync(content, { level: 9 });

// The image contains the program with its packages, and a stripped Node.js.
execFileSync(process.execPath, [path.join(project, "scripts/image-rootfs.mjs"), image], {
  stdio: ["ignore", "ignore", "inherit"],
});
mkdirSync(path.join(root, LIBRARY), { recursive: true });
cpSync(path.join(image, "app"), path.join(root, LIBRARY), { recursive: true });
cpSync(path.join(project, "deploy/kustomize"), path.join(root, LIBRARY, "deploy/kustomize"), {
  recursive: true,
});
cpSync(path.join(image, "usr/bin/node"), path.join(root, LIBRARY, "node"));

const starter = (program) => `#!/bin/sh\nexec ${LIBRARY}/node ${LIBRARY}/dist/bin/${program} "$@"\n`;
write("/usr/bin/sluice", starter("sluice.cjs"), 0o755);
write("/usr/bin/kubectl_complete-sluice", starter("kubectl-complete.cjs"), 0o755);
// The program recognizes kubectl by the name under which it is called.
symlinkSync("sluice.cjs", path.join(root, LIBRARY, "dist/bin/kubectl-sluice"));
write("/usr/bin/kubectl-sluice", starter("kubectl-sluice"), 0o755);
for (const unit of readdirSync(path.join(project, "deploy/systemd"))) {
  write(`/lib/systemd/system/${unit}`, read(`deploy/systemd/${unit}`));
}
for (const page of readdirSync(path.join(project, "dist/man"))) {
  write(`/usr/share/man/man${page.at(-1)}/${page}.gz`, zipped(read(`dist/man/${page}`)));
}
for (const [shell, file] of [
  ["bash", "bash-completion/completions/sluice"],
  ["zsh", "zsh/vendor-completions/_sluice"],
  ["fish", "fish/vendor_completions.d/sluice.fish"],
]) {
  const script = execFileSync(process.execPath, [
    path.join(project, "dist/bin/sluice.cjs"),
    "completion",
    shell,
  ]);
  write(`/usr/share/${file}`, script);
}
write(`${DOCS}/examples/gateway.yaml`, read("deploy/examples/gateway.yaml"));
write(`${DOCS}/changelog.gz`, zipped(read("CHANGELOG.md")));
write(
  `${DOCS}/copyright`,
  `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: sluice\n\nFiles: *\nCopyright: the authors of Sluice\nLicense: Apache-2.0\n On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n`,
);
mkdirSync(path.join(root, "etc/sluice"), { recursive: true });

const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
const paths = files.map((entry) => path.relative(root, path.join(entry.parentPath, entry.name))).toSorted();
const sizes = paths.map((name) => Math.ceil(statSync(path.join(root, name)).size / 1024));
const sums = paths.map((name) => {
  const sum = createHash("md5")
    .update(readFileSync(path.join(root, name)))
    .digest("hex");
  return `${sum}  ${name}\n`;
});
write("/DEBIAN/md5sums", sums.join(""));
write(
  "/DEBIAN/control",
  [
    "Package: sluice",
    `Version: ${version}`,
    `Architecture: ${architecture}`,
    "Maintainer: Sluice authors <authors@sluice.dev>",
    `Installed-Size: ${sizes.reduce((sum, size) => sum + size, 0)}`,
    "Depends: libc6 (>= 2.28), libstdc++6 (>= 9)",
    "Suggests: systemd",
    "Section: net",
    "Priority: optional",
    `Description: ${description.split(":")[0].toLowerCase()}`,
    ` ${description}`,
    "",
  ].join("\n"),
);
const reload = "#!/bin/sh\nset -e\nif [ -d /run/systemd/system ]; then systemctl daemon-reload; fi\n";
write("/DEBIAN/postinst", reload, 0o755);
write("/DEBIAN/postrm", reload, 0o755);
mkdirSync(folder, { recursive: true });
const made = path.join(folder, `sluice_${version}_${architecture}.deb`);
execFileSync("dpkg-deb", ["--root-owner-group", `-Z${compression}`, "--build", root, made], {
  stdio: ["ignore", "ignore", "inherit"],
});
console.log(made);
