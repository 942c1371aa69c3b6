// Collects the code that V8 compiles for a command, for scripts/build-binary.mjs: runs the loader
// outside a binary, with the same files, and keeps V8's code of each file that the command loaded,
// including functions that ran. Only the same Node.js with the same V8 options accepts it.
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";

const HOOK = `
const { readFileSync, writeFileSync } = require("node:fs");
const vm = require("node:vm");
const { assets, folder } = JSON.parse(process.env.SLUICE_COMPILE);
delete process.env.SLUICE_COMPILE;
const scripts = new Map();
vm.Script = class extends vm.Script {
  constructor(source, options) {
    super(source, options);
    scripts.set(options.filename.replace("sluice/", ""), this);
  }
};
const notFound = (name) => { throw new Error("no asset " + name); };
const getRawAsset = (name) => assets[name] === undefined ? notFound(name) : readFileSync(assets[name]);
const sea = { isSea: () => true, getRawAsset, getAsset: (name, encoding) => getRawAsset(name).toString(encoding) };
const { getBuiltinModule } = process;
process.getBuiltinModule = (id) => (id === "node:sea" ? sea : getBuiltinModule(id));
process.on("exit", () => {
  for (const [name, script] of scripts) writeFileSync(folder + "/" + name + ".compiled", script.createCachedData());
});
`;

/**
 * Runs the program whose start is `main` in these assets, and returns the assets with compiled
 * code. Throws if the command fails.
 */
export async function compiledAssets({ scratch, main, assets, command, env }) {
  const folder = path.join(scratch, "compiled");
  mkdirSync(folder);
  const program = path.join(scratch, "compile.cjs");
  writeFileSync(program, HOOK + main);
  const settings = { SLUICE_COMPILE: JSON.stringify({ assets, folder }) };
  await promisify(execFile)(process.execPath, [program, ...command], { env: { ...env, ...settings } });
  return Object.fromEntries(readdirSync(folder).map((name) => [name, path.join(folder, name)]));
}
