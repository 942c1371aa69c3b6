// Runs a program in the single binary: gives its files to each other, by name, as they are asked for. A script and a module at once.
{
  const { getAsset, getRawAsset } = process.getBuiltinModule("node:sea");
  const { Script } = process.getBuiltinModule("node:vm");
  const loaded = new Map();
  const load = (name) => {
    const found = loaded.get(name);
    if (found !== undefined) return found.exports;
    const module = { exports: {} };
    loaded.set(name, module);
    const text = getAsset(name, "utf8").replace(/^#!.*/, "");
    const source = `(function (exports, require, module, __filename) {${text}\n})`;
    // V8 checks what the build compiled, and compiles again what does not fit, as under other V8 options.
    const script = new Script(source, { filename: `sluice/${name}`, cachedData: compiled(name) });
    script.runInThisContext()(module.exports, require, module, process.execPath);
    return module.exports;
  };
  /** What the build compiled of a file; it has that of files which a session needs. */
  const compiled = (name) => {
    try {
      return new Uint8Array(getRawAsset(`${name}.compiled`));
    } catch {
      return undefined;
    }
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
