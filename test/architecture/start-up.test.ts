import path from "node:path";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/command-list.ts";
import { importedFile, readSource, typeScriptFilesIn, withoutComments } from "./source-files.ts";

/** Rooms that the commands of a client do not need, and how many of our modules they may load: each is read and compiled at every start. */
const MOST = 148;
const NOT_FOR_CLIENTS = [
  "src/app",
  "src/listeners",
  "src/access",
  "src/ingress",
  "src/nodes",
  "src/probes",
  "packages/lab/src",
];

/** Modules of ours that are loaded with these files: imports that are not of types alone, and not lazy ones. */
function loadedWith(...entries: readonly string[]): readonly string[] {
  const loaded = new Set<string>();
  const visit = (file: string): void => {
    if (loaded.has(file)) return;
    loaded.add(file);
    const code = withoutComments(readSource(file));
    for (const [, specifier = ""] of code.matchAll(VALUE_IMPORT)) {
      const target = importedFile(file, specifier);
      if (target !== undefined) visit(target);
    }
  };
  for (const entry of entries) visit(entry);
  return [...loaded];
}

const VALUE_IMPORT = /^(?:import|export)\s(?!type\s)(?:[^"';]*?\sfrom\s)?["']([^"']+)["']/gm;

const MAIN = "src/main.ts";
const tableOf = (name: string) => `src/cli/commands/${name}.ts`;
const PROGRAMS = typeScriptFilesIn("src/cli").filter((file) => !file.startsWith("src/cli/commands/"));
/** A command's program has its name, in the folder of its family. */
const programOf = (name: string) => PROGRAMS.find((file) => path.posix.basename(file) === `${name}.ts`) ?? "";

describe("modules loaded at the start", () => {
  it("sluice --help takes few", () => {
    expect(loadedWith(MAIN, "src/cli/help-text.ts").length).toBeLessThanOrEqual(13);
  });

  it.each(COMMANDS)("sluice $name --help takes no program", ({ name }) => {
    const loaded = loadedWith(MAIN, tableOf(name));
    expect(
      loaded.filter(
        (file) =>
          !/^(?:packages\/client\/)?src\/(?:main\.ts|cli\/|config\/|kubernetes\/credentials-error|observability\/mask-controls)/.test(
            file,
          ),
      ),
    ).toEqual([]);
    expect(loaded).not.toContain(programOf(name));
  });

  it.each(["exec", "attach", "cp", "port-forward"])("sluice %s takes nothing of the gateway", (name) => {
    const loaded = loadedWith(MAIN, tableOf(name), programOf(name));
    expect(loaded.filter((file) => NOT_FOR_CLIENTS.some((room) => file.startsWith(`${room}/`)))).toEqual([]);
    // The YAML library takes 10 ms, and most kubeconfigs do not need it.
    expect(loaded).not.toContain("packages/client/src/config/yaml-documents.ts");
    expect(loaded.length).toBeLessThanOrEqual(MOST);
  });

  it("completion of flags takes no API client", () => {
    const loaded = loadedWith(MAIN, "src/cli/completion/complete.ts", tableOf("serve"));
    expect(loaded.filter((file) => /^packages\/client\/src\/[^/]+$/.test(file))).toEqual([]);
    expect(loaded.length).toBeLessThanOrEqual(65);
  });
});
