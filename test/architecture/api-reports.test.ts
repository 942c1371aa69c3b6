import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { readSource, repositoryRoot } from "./source-files.ts";

interface Door {
  readonly types?: string;
}

/** The published workspaces. What a door leads to changes with its report only: `--update` writes it. */
const PUBLISHED = ["protocols", "packages/client"] as const;

describe("API reports", () => {
  it.each(PUBLISHED)("%s/api.md has every exported declaration, as it is built", async (workspace) => {
    const { exports } = JSON.parse(readSource(`${workspace}/package.json`)) as {
      readonly exports: Readonly<Record<string, Door | string>>;
    };
    const { name } = JSON.parse(readSource(`${workspace}/package.json`)) as { readonly name: string };
    const doors = Object.entries(exports).flatMap(([door, target]) =>
      typeof target === "string" || target.types === undefined || door.includes("*")
        ? []
        : [
            `## \`${door.replace(".", name)}\`\n\n\`\`\`ts\n${reportOf(path.posix.join(workspace, target.types))}\n\`\`\`\n`,
          ],
    );
    const report = `# The API of ${name}\n\nWritten by \`npx vitest run test/architecture/api-reports.test.ts --project unit --update\`.\n\n${doors.join("\n")}`;
    await expect(report).toMatchFileSnapshot(`../../${workspace}/api.md`);
  });

  it("takes a declaration without its comments and private parts", () => {
    const text = `/** Text. */\nexport declare class A {\n    #private;\n    /** More. */\n    b(): void;\n}\nexport type C = "c";\n`;
    expect([...declarationsIn(text)]).toEqual([
      ["A", "declare class A {\n    b(): void;\n}"],
      ["C", 'type C = "c";'],
    ]);
  });
});

/** They say what happened, and are not options. */
const RESULTS = ["ConnectErrorDetails", "UpgradedConnection"];

describe("options of @sluice/client", () => {
  const files = ["dist/index.d.ts", "dist/browser.d.ts"].map((file) => `packages/client/${file}`);
  const texts = new Map(files.flatMap((file) => [...optionsOf(file)]));

  it.each([...texts])("%s: its hover text has the default", (_, text) => {
    expect(text).toMatch(/\bdefault/i);
  });

  it("are all read", () => {
    expect(texts.size).toBeGreaterThan(50);
    expect(texts.get("CopyOptions.retries")).toContain("Default: 5.");
    expect(texts.get("EntrySelection.context")).toBeDefined();
  });
});

/** The comment of each optional member of the interfaces that a door exports, or that these extend. */
function* optionsOf(file: string): Generator<[option: string, comment: string]> {
  const exported = exportsOf(file);
  const wanted = new Set(exported.keys());
  for (const text of exported.values())
    for (const [, base = ""] of text.matchAll(/^interface \w+ extends (\w+)/gm)) wanted.add(base);
  const sources = readdirSync(path.join(repositoryRoot, "packages/client/dist"), {
    recursive: true,
    encoding: "utf8",
  }).filter((name) => name.endsWith(".d.ts"));
  for (const source of sources) {
    const text = readSource(path.posix.join("packages/client/dist", source));
    for (const [, name = "", body = ""] of text.matchAll(
      /^export interface (\w+)[^{\n]*\{\n([\s\S]*?)^\}/gm,
    )) {
      if (!wanted.has(name) || RESULTS.includes(name)) continue;
      let comment = "";
      for (const line of body.split("\n")) {
        if (/^ {4}\/?\*| {5}\*/.test(line)) comment += `${line.trim()} `;
        const [, member, mark] = /^ {4}(?:readonly )?(\w+)(\?)?/.exec(line) ?? [];
        if (member === undefined) continue;
        if (mark === "?") yield [`${name}.${member}`, comment];
        comment = "";
      }
    }
  }
}

/** The declarations that a door exports, sorted by name. */
function reportOf(file: string): string {
  return [...exportsOf(file)]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([, text]) => text)
    .join("\n");
}

function exportsOf(file: string): Map<string, string> {
  const text = readSource(file);
  const found = declarationsIn(text);
  for (const [, names = "", specifier = ""] of text.matchAll(
    /^export (?:type )?\{([^}]*)\} from "([^"]+)";/gm,
  )) {
    const from = specifier.startsWith(".")
      ? exportsOf(path.posix.join(path.posix.dirname(file), specifier.replace(/\.js$/, ".d.ts")))
      : new Map<string, string>();
    for (const entry of names.split(",").map((one) => one.trim().replace(/^type /, ""))) {
      if (entry === "") continue;
      const [own = "", given = own] = entry.split(" as ");
      found.set(given, from.get(own) ?? `export { ${own} } from "${specifier}";`);
    }
  }
  return found;
}

/** The declarations of a file that are exported where they stand, by name. */
function declarationsIn(text: string): Map<string, string> {
  const found = new Map<string, string>();
  const bare = text
    .replace(/^[ \t]*\/\*\*[\s\S]*?\*\/\n/gm, "")
    .replace(/^\s*(?:#private|private .*);\n/gm, "");
  const pattern =
    /^export ((?:declare )?(?:abstract )?(?:class|interface|type|const|function|enum|let) (\w+)[\s\S]*?)(?=\n(?:export|import|declare|type|interface|\/\*\*|\/\/|$)|\n*$(?![\s\S]))/gm;
  for (const [, declaration = "", name = ""] of bare.matchAll(pattern)) {
    const before = found.get(name);
    found.set(name, before === undefined ? declaration.trimEnd() : `${before}\n${declaration.trimEnd()}`);
  }
  return found;
}

it("the workspaces are built before tests", () => {
  for (const workspace of PUBLISHED)
    expect(existsSync(path.join(repositoryRoot, workspace, "dist"))).toBe(true);
});
