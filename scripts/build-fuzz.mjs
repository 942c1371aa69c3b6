// Writes the fuzz targets of test/support/fuzz/targets.ts for Jazzer.js into test/fuzz/built: for
// each a CommonJS file fuzz_NAME.js that exports `fuzz`, and a folder fuzz_NAME_seed_corpus. Prints
// a line for each file, with `--sync` if its `fuzz` returns no promise.
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { rolldown } from "rolldown";
import { fromSources, root } from "./bundle.mjs";

/** As deep below the root as targets.ts, which reads examples by relative paths. */
const built = path.join(root, "test/fuzz/built");
rmSync(built, { recursive: true, force: true });
const bundle = await rolldown({
  input: { targets: path.join(root, "test/support/fuzz/targets.ts") },
  cwd: root,
  platform: "node",
  resolve: fromSources,
  tsconfig: false,
  checks: { eval: false, ineffectiveDynamicImport: false },
});
await bundle.write({
  dir: built,
  format: "cjs",
  entryFileNames: "[name].cjs",
  chunkFileNames: "[name].cjs",
  comments: false,
});
await bundle.close();

const { fuzzTargets } = createRequire(import.meta.url)(path.join(built, "targets.cjs"));
for (const [name, { seeds, isAsync = false }] of Object.entries(fuzzTargets)) {
  const target = `require("./targets.cjs").fuzzTargets.${name}`;
  const file = `fuzz_${name}.js`;
  writeFileSync(
    path.join(built, file),
    `module.exports.fuzz = (data) => ${target}.run(Buffer.from(data));\n`,
  );
  const corpus = path.join(built, `fuzz_${name}_seed_corpus`);
  mkdirSync(corpus);
  for (const [index, seed] of seeds.entries()) writeFileSync(path.join(corpus, `seed-${index}`), seed);
  const kept = path.join(root, "test/fuzz/corpus", name);
  for (const input of existsSync(kept) ? readdirSync(kept) : [])
    copyFileSync(path.join(kept, input), path.join(corpus, input));
  console.log(isAsync ? file : `${file} --sync`);
}
// The root's package is an ES module package.
writeFileSync(path.join(built, "package.json"), `${JSON.stringify({ type: "commonjs" })}\n`);
