import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

/** The repository's root: the architecture tests speak about paths relative to it. */
export const repositoryRoot = path.resolve(import.meta.dirname, "../..");

export interface ImportStatement {
  /** As written: `./frame.ts`, `node:net`, `ws`; `undefined` for an `import()` whose argument is computed. */
  specifier: string | undefined;
  isDynamic: boolean;
}

/** Every TypeScript file under `folder` (relative to the root, `/` separated), sorted. Empty when the folder is absent. */
export function typeScriptFilesIn(folder: string): string[] {
  let names: string[];
  try {
    names = readdirSync(path.join(repositoryRoot, folder), { recursive: true, encoding: "utf8" });
  } catch {
    return [];
  }
  return names
    .filter((name) => name.endsWith(".ts") && !/(?:^|[\\/])(?:node_modules|dist(?:\.\d+)?)[\\/]/.test(name))
    .map((name) => `${folder}/${name.split(path.sep).join("/")}`)
    .sort();
}

/** The sources of the workspaces and the gateway, each workspace importing only those before it. */
export const SOURCE_FOLDERS = ["protocols", "packages/client/src", "packages/lab/src", "src"] as const;

export function sourceFiles(): string[] {
  return SOURCE_FOLDERS.flatMap((folder) => typeScriptFilesIn(folder));
}

const WORKSPACES: readonly (readonly [pattern: RegExp, file: (subpath: string) => string])[] = [
  [/^@sluice\/protocols$/, () => "protocols/protocol-error.ts"],
  [/^@sluice\/protocols\/(.+)$/, (protocol) => `protocols/${protocol}/index.ts`],
  [/^@sluice\/client$/, () => "packages/client/src/index.ts"],
  [/^@sluice\/client\/internal\/(.+)$/, (module) => `packages/client/src/${module}.ts`],
  [/^@sluice\/lab\/(.+)$/, (module) => `packages/lab/src/${module}.ts`],
];

/** The file of ours that `file` imports so; `undefined` for a package and for Node's modules. */
export function importedFile(file: string, specifier: string | undefined): string | undefined {
  if (specifier === undefined) return undefined;
  if (specifier.startsWith(".")) return path.posix.join(path.posix.dirname(file), specifier);
  for (const [pattern, place] of WORKSPACES) {
    const match = pattern.exec(specifier);
    if (match !== null) return place(match[1] ?? "");
  }
  return undefined;
}

export function readSource(file: string): string {
  return readFileSync(path.join(repositoryRoot, file), "utf8");
}

/** The files that git tracks, or `undefined` where this is not a git checkout (a container image, an npm tarball). */
export function trackedFiles(): string[] | undefined {
  try {
    const listing = execFileSync("git", ["ls-files", "-z"], {
      cwd: repositoryRoot,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    return listing.split("\0").filter(Boolean);
  } catch {
    return undefined;
  }
}

const staticImport = /^(?:import|export)\s(?:[^"';]*?\sfrom\s)?["']([^"']+)["']/gm;
const dynamicImport = /(?<![.\w$])import\(\s*(?:["']([^"']+)["'])?/g;

export function importsOf(source: string): ImportStatement[] {
  const code = withoutComments(source);
  return [
    ...Array.from(code.matchAll(staticImport), ([, specifier]) => ({ specifier, isDynamic: false })),
    ...Array.from(code.matchAll(dynamicImport), ([, specifier]) => ({ specifier, isDynamic: true })),
  ];
}

// Strings are matched so that a `//` inside one is not taken for a comment. A regular expression literal that holds a
// quote or `//` may hide the rest of its line; no worse, because neither alternative runs past the end of a line.
const commentOrString = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g;

export function withoutComments(source: string): string {
  return source.replace(commentOrString, (text) => (text.startsWith("/") ? blank(text) : text));
}

/** The comments, each as one line without its marks; comments on successive lines are one. */
export function commentsOf(source: string): string[] {
  const found: string[] = [];
  let end = -1;
  for (const { 0: text, index } of source.matchAll(commentOrString)) {
    if (!text.startsWith("/")) continue;
    const words = text
      .replace(/^\/\*+|\*\/$|^\/\//g, "")
      .replace(/\n\s*\*? ?/g, " ")
      .trim();
    const continues = text.startsWith("//") && end !== -1 && /^\n[ \t]*$/.test(source.slice(end, index));
    if (continues) found.push(`${found.pop() ?? ""} ${words}`);
    else found.push(words);
    end = text.startsWith("//") ? index + text.length : -1;
  }
  return found;
}

/** The documents: markdown beside the sources, in `docs` and `protocols`. */
export function markdownFiles(): string[] {
  const names = ["docs", "protocols"].flatMap((folder) =>
    readdirSync(path.join(repositoryRoot, folder), { recursive: true, encoding: "utf8" }).map((name) =>
      path.posix.join(folder, name.split(path.sep).join("/")),
    ),
  );
  return [...readdirSync(repositoryRoot), ...names].filter((name) => name.endsWith(".md")).sort();
}

/** Comments and the insides of quoted strings blanked out; template literals stay, for the code they embed. */
export function withoutCommentsAndStrings(source: string): string {
  return source.replace(commentOrString, (text) => (text.startsWith("/") ? blank(text) : '""'));
}

function blank(text: string): string {
  return text.replace(/[^\n]/g, " ");
}
