// Puts the npm package `sluice` into a folder, to be packed or published from there: the files that package.json lists, as they are built, and its manifest
// with the programs of publishConfig. In the repository itself they would have npx build at every call.
//
//   node scripts/stage-package.mjs FOLDER      after `npm run build`
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const [, , wanted] = process.argv;
if (wanted === undefined) {
  console.error("usage: node scripts/stage-package.mjs FOLDER");
  process.exit(2);
}
const folder = path.resolve(wanted);
const manifest = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
const {
  private: _,
  workspaces: __,
  scripts: ___,
  devDependencies: ____,
  publishConfig,
  ...published
} = manifest;

mkdirSync(folder, { recursive: true });
for (const file of published.files) {
  mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
  cpSync(path.join(root, file), path.join(folder, file), { recursive: true });
}
writeFileSync(
  path.join(folder, "package.json"),
  `${JSON.stringify({ ...published, ...publishConfig }, undefined, 2)}\n`,
);
