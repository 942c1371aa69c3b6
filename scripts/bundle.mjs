// Bundles the program into few files that start fast, for npm (build-bundle.mjs) and for the single
// binary (build-binary.mjs). The format is CommonJS, because importing node:http as a module also
// loads fetch, WebSocket and HTTP/2. Names and lines stay readable in stack traces.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

export const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const source = (name) => path.join(root, "src", name);
/** The source folders of the workspaces that are part of the program. */
const OURS = /^@sluice\//;
/** Matches the name by which a source file refers to a program that a thread or process runs. */
const OWN_PROGRAM = /ownProgram\("([\w-]+)", import\.meta\.url\)/g;
const PACKAGE = /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//;

/**
 * For packages that have both forms, the ES modules: code that no import names is dropped.
 * Workspaces are read from their sources.
 */
export const fromSources = {
  mainFields: ["module", "main"],
  conditionNames: ["source", "node", "import", "module", "default"],
};

/**
 * Writes the program to a folder, with the packages that `isIncluded` accepts, and returns their
 * names.
 */
export async function writeBundle(folder, isIncluded) {
  rmSync(folder, { recursive: true, force: true });
  const start = new Set();
  const client = new Set();
  const bundle = await rolldown({
    input: { sluice: source("main.ts"), "kubectl-complete": source("kubectl-complete.ts"), ...ownPrograms() },
    cwd: root,
    platform: "node",
    resolve: fromSources,
    tsconfig: false,
    plugins: [startGroups(start, client)],
    external: (id) => /^[^./]/.test(id) && !path.isAbsolute(id) && !OURS.test(id) && !isIncluded(id),
    // Packages that look for the global object, or that have their own build for it, use `eval`.
    checks: { eval: false, ineffectiveDynamicImport: false },
  });
  const { output } = await bundle.write({
    dir: folder,
    format: "cjs",
    entryFileNames: "[name].cjs",
    chunkFileNames: "[name].cjs",
    comments: false,
    codeSplitting: {
      groups: [
        { name: "yaml", test: (id) => id.includes("node_modules/yaml/"), priority: 1 },
        { name: "start", test: (id) => start.has(id) },
        { name: "client", test: (id) => client.has(id) },
      ],
    },
  });
  await bundle.close();
  for (const { fileName, code } of output)
    if (code !== undefined) writeFileSync(path.join(folder, fileName), inAscii(code));
  const packages = output.flatMap(({ moduleIds = [] }) => moduleIds.map((id) => PACKAGE.exec(id)?.[1]));
  return new Set(packages.filter((name) => name !== undefined));
}

/** V8 keeps a text with a character beyond Latin-1 in two bytes for each, and reads it slower. */
function inAscii(code) {
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * Finds the modules that are loaded together at the start: opening twenty files costs more than
 * reading one larger file.
 */
function startGroups(start, client) {
  return {
    name: "start-groups",
    buildEnd() {
      const add = (id, into) => {
        if (!id.startsWith(root) || id.includes("node_modules") || start.has(id) || client.has(id)) return;
        into.add(id);
        for (const next of this.getModuleInfo(id)?.importedIds ?? []) add(next, into);
      };
      add(source("cli/command-line.ts"), start);
      for (const name of [
        "src/cli/commands/exec.ts",
        "src/cli/client/exec.ts",
        "packages/client/src/dial-resumable.ts",
      ])
        add(path.join(root, name), client);
    },
  };
}

function ownPrograms() {
  const programs = {};
  for (const file of readdirSync(source("."), { recursive: true })) {
    if (!file.endsWith(".ts")) continue;
    for (const [, name] of readFileSync(source(file), "utf8").matchAll(OWN_PROGRAM)) {
      programs[name] = path.join(path.dirname(source(file)), `${name}.ts`);
    }
  }
  return programs;
}

/** The licences of packages, one after another. Throws if a package has none. */
export function licencesOf(names) {
  return [...names]
    .toSorted()
    .map((name) => {
      const folder = path.join(root, "node_modules", name);
      const { version, license } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
      const file = readdirSync(folder).find((entry) => /^(licen[cs]e|copying)/i.test(entry));
      if (file === undefined && license === undefined) throw new Error(`${name} has no licence`);
      const text = file === undefined ? `${license}\n` : readFileSync(path.join(folder, file), "utf8");
      return `${name} ${version}\n\n${text}`;
    })
    .join("\n");
}
