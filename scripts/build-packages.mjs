// Fills packages/*/dist: what their exports lead to, copied from a built folder, and nothing else. Fails on an import that a package does not declare.
//
//   node scripts/build-packages.mjs FOLDER
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { replaceFolder } from "./replace-folder.mjs";

/** The statements that tsc writes: at the beginning of a line, the name in double quotes; import(); and what is required. */
const IMPORTS = /(?:^(?:import|export)\b[^"]*\bfrom |^import |\bimport\(|\bcreateRequire\(.*\)\()"([^"]+)"/gm;
const root = fileURLToPath(new URL("..", import.meta.url));
const built = path.resolve(process.argv[2]);

for (const name of readdirSync(path.join(root, "packages"))) {
  const folder = path.join(root, "packages", name);
  const { exports, dependencies = {} } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
  if (exports === undefined) continue;
  const target = path.join(folder, `dist.${process.pid}`);
  const place = (file) => path.relative("dist", file);
  const entries = Object.values(exports).filter((entry) => entry.endsWith(".js"));
  const files = new Set(entries.flatMap((entry) => [entry, entry.replace(/js$/, "d.ts")]));
  // A set gives out what is added while it is walked.
  for (const file of files) {
    const isDeclaration = file.endsWith(".d.ts");
    // tsc rewrites the extension of imports in programs only.
    const text = readFileSync(path.join(built, place(file)), "utf8")
      .replace(/\/\/# sourceMappingURL=.*\n?/, "")
      .replace(IMPORTS, (statement) => statement.replace(/\.ts"$/, '.js"'));
    for (const [, specifier] of text.matchAll(IMPORTS)) {
      if (specifier.startsWith(".")) {
        const next = path.posix.join(path.posix.dirname(file), specifier);
        files.add(`./${isDeclaration ? next.replace(/js$/, "d.ts") : next}`);
      } else if (!specifier.startsWith("node:") && !(specifier in dependencies)) {
        throw new Error(
          `packages/${name}: ${file} imports ${specifier}, which its package.json does not declare`,
        );
      }
    }
    const copy = path.join(target, place(file));
    mkdirSync(path.dirname(copy), { recursive: true });
    writeFileSync(copy, text);
  }
  replaceFolder(path.join(folder, "dist"), target);
  copyFileSync(path.join(root, "LICENSE"), path.join(folder, "LICENSE"));
}
