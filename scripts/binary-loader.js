// Runs a program in the single binary: passes its files to each other, by name, on request. This
// file is valid as a script and as a module.
{
  const { getRawAsset } = process.getBuiltinModule("node:sea");
  const { Buffer } = process.getBuiltinModule("node:buffer");
  const { Script } = process.getBuiltinModule("node:vm");
  const loaded = new Map();
  const load = (name) => {
    const found = loaded.get(name);
    if (found !== undefined) return found.exports;
    const module = { exports: {} };
    loaded.set(name, module);
    // scripts/bundle.mjs writes ASCII alone.
    const text = Buffer.from(getRawAsset(name)).latin1Slice().replace(/^#!.*/, "");
    const source = `(function (exports, require, module, __filename) {${text}\n})`;
    // V8 checks the code that the build compiled, and compiles it again if it does not fit, for
    // example because of other V8 options.
    const script = new Script(source, { filename: `sluice/${name}`, cachedData: compiled(name) });
    script.runInThisContext()(module.exports, require, module, process.execPath);
    return module.exports;
  };
  /** The compiled code of a file; the build has it for files that a session needs. */
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
  // The build replaces this by the program's name.
  load("PROGRAM.cjs");
}
