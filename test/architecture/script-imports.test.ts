import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { importedFile, repositoryRoot } from "./source-files.ts";

/** The sources of what a script imports, and their names; no type checker reads scripts. */
function importsOf(script: string): { readonly source: string; readonly names: readonly string[] }[] {
  const text = readFileSync(path.join(repositoryRoot, script), "utf8");
  const found = [...text.matchAll(/^(?:import|const) \{([^}]+)\} (?:from|= await import\() ?"([^"]+)"/gm)];
  return found.flatMap(([, names = "", specifier = ""]) => {
    const source = sourceOf(script, specifier);
    const imported = names.split(",").map((name) => name.trim().replace(/ as .*|: .*/, ""));
    return source === undefined ? [] : [{ source, names: imported.filter((name) => name !== "") }];
  });
}

/** Undefined for packages, for Node's modules and for other scripts. */
function sourceOf(script: string, specifier: string): string | undefined {
  if (specifier.startsWith("@sluice/")) return importedFile(script, specifier);
  const built = /\/(?:dist|\.cache\/sluice-bench)\/((?:src|test)\/.+)\.js$/.exec(specifier);
  return built === null ? undefined : `${built[1]}.ts`;
}

const scripts = ["bench", "scripts"].flatMap((folder) =>
  readdirSync(path.join(repositoryRoot, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".mjs"))
    .map((name) => `${folder}/${name}`),
);
const importing = scripts.filter((script) => importsOf(script).length > 0);

describe("scripts import names that exist", () => {
  it("which is seen in most benches", () => {
    expect(importing.length).toBeGreaterThan(15);
  });

  it.each(importing)("%s", async (script) => {
    const missing: string[] = [];
    for (const { source, names } of importsOf(script)) {
      const exported: object = await import(path.join(repositoryRoot, source));
      missing.push(...names.filter((name) => !(name in exported)).map((name) => `${name} of ${source}`));
    }
    expect(missing).toEqual([]);
  });
});
