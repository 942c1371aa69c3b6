// Runs a program in the single binary: gives its files to each other, by name, as they are asked for. A script and a module at once.
{
  const { getAsset } = process.getBuiltinModule("node:sea");
  const { compileFunction } = process.getBuiltinModule("node:vm");
  const parameters = ["exports", "require", "module", "__filename"];
  const loaded = new Map();
  const load = (name) => {
    const found = loaded.get(name);
    if (found !== undefined) return found.exports;
    const module = { exports: {} };
    loaded.set(name, module);
    const run = compileFunction(getAsset(name, "utf8"), parameters, { filename: `sluice/${name}` });
    run(module.exports, require, module, process.execPath);
    return module.exports;
  };
  const require = (id) => {
    if (id.startsWith("./")) return load(id.slice(2));
    const builtin = process.getBuiltinModule(id);
    if (builtin !== undefined) return builtin;
    throw Object.assign(new Error(`Cannot find module '${id}'`), { code: "MODULE_NOT_FOUND" });
  };
  // Replaced by the program's name.
  load("PROGRAM.cjs");
}
