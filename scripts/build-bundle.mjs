// Writes dist/bin: the programs of package.json, and what they start in threads and processes of their own, in few files that load fast. CommonJS,
// because an import of node:http as a module also loads fetch, WebSocket and HTTP/2. Names and lines stay readable in stack traces.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const folder = path.join(root, "dist/bin");
/** What every client command loads, and comes in many files. Other packages stay where npm installs them. */
const INCLUDED = ["yaml"];
/** How a source file names a program beside itself. */
const SIBLING = /`([\w-]+)\$\{path\.extname\(fileURLToPath\(import\.meta\.url\)\)\}`/g;

/** Entry points by their names in dist/bin. */
function entryPoints() {
  const entries = { sluice: "src/main.ts", "kubectl-complete": "src/kubectl-complete.ts" };
  for (const name of readdirSync(path.join(root, "src"), { recursive: true })) {
    if (!name.endsWith(".ts")) continue;
    const text = readFileSync(path.join(root, "src", name), "utf8");
    for (const [, sibling] of text.matchAll(SIBLING)) {
      entries[sibling] = path.posix.join("src", path.posix.dirname(name), `${sibling}.ts`);
    }
  }
  return entries;
}

rmSync(folder, { recursive: true, force: true });
/** Modules that start together are one file: opening twenty costs more than reading one that is larger. */
const groups = new Map([
  ["start", new Set()],
  ["client", new Set()],
]);
const grouping = {
  name: "grouping",
  buildEnd() {
    const source = (name) => path.join(root, "src", name);
    const add = (id, into, others) => {
      const found = this.getModuleInfo(id);
      if (
        found === null ||
        into.has(id) ||
        others.has(id) ||
        !id.startsWith(root) ||
        id.includes("node_modules")
      )
        return;
      into.add(id);
      for (const next of found.importedIds) add(next, into, others);
    };
    const [start, client] = groups.values();
    add(source("cli/command-line.ts"), start, client);
    for (const name of ["cli/commands/exec.ts", "cli/exec.ts", "client/dial-resumable.ts"])
      add(source(name), client, start);
  },
};

const bundle = await rolldown({
  input: entryPoints(),
  cwd: root,
  platform: "node",
  tsconfig: false,
  plugins: [grouping],
  external: (id) => /^[^./]/.test(id) && !path.isAbsolute(id) && !INCLUDED.includes(id),
});
const { output } = await bundle.write({
  dir: folder,
  format: "cjs",
  entryFileNames: "[name].cjs",
  chunkFileNames: "[name].cjs",
  comments: false,
  codeSplitting: {
    groups: [
      { name: "packages", test: (id) => id.includes("node_modules"), priority: 1 },
      ...[...groups].map(([name, ids]) => ({ name, test: (id) => ids.has(id) })),
    ],
  },
});
await bundle.close();
const kib = output.reduce((sum, { code = "" }) => sum + code.length, 0) / 1024;
writeFileSync(path.join(folder, "LICENSES"), INCLUDED.map(licenceOf).join("\n"));
console.log(`dist/bin: ${output.length} files, ${Math.round(kib)} KiB`);

function licenceOf(name) {
  const at = path.join(root, "node_modules", name);
  const { version } = JSON.parse(readFileSync(path.join(at, "package.json"), "utf8"));
  return `${name} ${version}\n\n${readFileSync(path.join(at, "LICENSE"), "utf8")}`;
}
