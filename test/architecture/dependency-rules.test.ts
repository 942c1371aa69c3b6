import path from "node:path";
import { describe, expect, it } from "vitest";
import { DOORS, FIRST_FILES, PACKAGE_HOMES, ROOMS } from "./rooms.ts";
import {
  commentsOf,
  importedFile,
  importsOf,
  readSource,
  sourceFiles,
  typeScriptFilesIn,
  withoutCommentsAndStrings,
} from "./source-files.ts";

/** `protocols` is pure: the only module of Node's that it may import, and from where. SPDY's header blocks need deflate. */
const pureExceptions: Readonly<Record<string, string>> = {
  "protocols/spdy/header-compression.ts": "node:zlib",
};

/** What would let the clock, chance, the environment or Node's own types into `protocols`. */
const impureGlobals =
  /(?<![.\w$])(?:Buffer|Date|performance|process|setTimeout|setInterval|setImmediate|queueMicrotask|fetch|console|globalThis)\b(?!\s*\??:)|\bMath\.random\b|(?<![.\w$])crypto\./g;

const sources = sourceFiles();

describe("dependency rules", () => {
  it("imports follow the table of folders and packages", () => {
    const violations = sources.flatMap((file) =>
      importsOf(readSource(file)).flatMap(({ specifier, isDynamic }) => {
        const reason = refusalOf(file, specifier);
        return reason === undefined
          ? []
          : [`${file} ${isDynamic ? "loads" : "imports"} ${specifier}: ${reason}`];
      }),
    );
    expect(violations).toEqual([]);
  });

  it("every door is used, and leads downwards", () => {
    const used = new Set(
      sources.flatMap((file) =>
        importsOf(readSource(file)).flatMap(({ specifier }) => {
          const target = importedFile(file, specifier);
          const to = target === undefined ? undefined : folderOf(target);
          return to === undefined || to === folderOf(file) ? [] : [`${folderOf(file)} -> ${to}`];
        }),
      ),
    );
    const drawn = Object.entries(DOORS).flatMap(([from, rooms]) => rooms.map((to) => `${from} -> ${to}`));
    expect(drawn.filter((door) => !used.has(door))).toEqual([]);
    const upward = drawn.filter((door) => {
      const [from = "", to = ""] = door.split(" -> ");
      return rankOf(to) < rankOf(from);
    });
    expect(upward).toEqual([]);
  });

  it("ARCHITECTURE.md lists the rooms in this order, and each package with its room", () => {
    const rows = Array.from(
      readSource("ARCHITECTURE.md").matchAll(/^\| `([^`]+)` \| (.+) \|$/gm),
      ([, name = "", text = ""]) => ({ name, home: /\(`([^`]+)`\)$/.exec(text)?.[1] }),
    );
    const rooms = rows.filter(({ name }) => /^(?:src|protocols|packages)\b/.test(name));
    expect(rooms.map(({ name }) => name)).toEqual(ROOMS);
    const packages = rows.filter((row) => !rooms.includes(row)).map(({ name, home }) => [name, home]);
    expect(packages.toSorted()).toEqual(Object.entries(PACKAGE_HOMES).toSorted());
  });

  it.each(
    Object.entries(FIRST_FILES),
  )("%s: %s says first what lives there, as ARCHITECTURE.md does", (room, file) => {
    const row = readSource("ARCHITECTURE.md")
      .split("\n")
      .find((line) => line.startsWith(`| \`${room}\` |`));
    const [first = ""] = commentsOf(readSource(file)).filter((comment) => !comment.startsWith("#!"));
    expect(`| \`${room}\` | ${first.replace(`${room}: `, "")} |`).toBe(row);
  });

  it("each package with an install script is decided on, so that npm 11 warns of none", () => {
    const { packages } = JSON.parse(readSource("package-lock.json")) as {
      packages: Record<string, { hasInstallScript?: boolean }>;
    };
    const names = Object.keys(packages)
      .filter((place) => packages[place]?.hasInstallScript && place.includes("node_modules/"))
      .map((place) => place.slice(place.lastIndexOf("node_modules/") + 13));
    const { allowScripts } = JSON.parse(readSource("package.json")) as {
      allowScripts?: Record<string, boolean>;
    };
    expect(Object.keys(allowScripts ?? {})).toEqual(names);
  });

  it("each kind of server is made in one file, with its bounds", () => {
    const makers = sources.flatMap((file) =>
      Array.from(
        readSource(file).matchAll(/import \{([^}]*)\} from "node:(https?|http2|tls)"/g),
        ([, names = "", module]) =>
          /\bcreate(?:Secure)?Server\b/.test(names) ? [`node:${module}: ${file}`] : [],
      ).flat(),
    );
    expect(makers).toEqual([
      "node:http: packages/client/src/http/downstream/http1-server.ts",
      "node:https: packages/client/src/http/downstream/http1-server.ts",
      "node:tls: src/ingress/secure-server.ts",
      "node:http2: src/listeners/http2-connections.ts",
    ]);
  });

  it("protocols know no clock, chance, environment or Node globals", () => {
    const violations = typeScriptFilesIn("protocols").flatMap((file) =>
      Array.from(
        withoutCommentsAndStrings(readSource(file)).matchAll(impureGlobals),
        ([name]) => `${file} uses ${name}`,
      ),
    );
    expect(violations).toEqual([]);
  });

  it("no folder or file is a drawer for everything", () => {
    const drawers = sources.filter((file) =>
      /(?:^|\/)(?:utils?|helpers?|common|types|misc)(?:\/|\.ts$)/.test(file),
    );
    expect(drawers).toEqual([]);
  });
});

describe("the rules themselves", () => {
  it.each([
    ["protocols/bytes/a.ts", "node:net", "protocols are pure"],
    ["protocols/spdy/a.ts", "node:zlib", "protocols are pure"],
    ["protocols/spdy/a.ts", "../../src/sessions/plan.ts", "by name"],
    ["protocols/spdy/a.ts", "../websocket/index.ts", "no door"],
    ["src/sessions/a.ts", "ws", "has no home"],
    ["src/sessions/a.ts", "pino", "belongs to src/observability"],
    ["src/net/a.ts", "../sessions/plan.ts", "no door"],
    ["src/sessions/a.ts", "../../protocols/spdy/index.ts", "by name"],
    ["packages/client/src/a.ts", "@sluice/lab/load/generator", "no door"],
    ["src/sessions/a.ts", undefined, "computed"],
    ["src/sessions/a.ts", "./plan.js", "end in .ts"],
    ["src/drawer/a.ts", "../config/limits.ts", "has no row"],
  ])("%s may not import %s", (file, specifier, reason) => {
    expect(refusalOf(file, specifier)).toContain(reason);
  });

  it.each([
    ["protocols/spdy/header-compression.ts", "node:zlib"],
    ["protocols/spdy/a.ts", "../protocol-error.ts"],
    ["protocols/spdy/a.ts", "./frames/ping.ts"],
    ["src/sessions/a.ts", "@sluice/protocols/spdy"],
    ["src/sessions/a.ts", "@sluice/client/internal/net/dial"],
    ["src/sessions/a.ts", "../nodes/known-nodes.ts"],
    ["src/legs/agent/a.ts", "../../sessions/plan.ts"],
    ["src/sessions/a.ts", "node:http"],
    ["src/access/authn/a.ts", "../authz/b.ts"],
    ["src/observability/a.ts", "pino"],
    ["src/cli/demo/demo.ts", "@sluice/lab/demo/demo-cluster"],
    ["src/main.ts", "./cli/demo/demo.ts"],
  ])("%s may import %s", (file, specifier) => {
    expect(refusalOf(file, specifier)).toBeUndefined();
  });

  it("static, side-effect, re-exporting, many-line and dynamic imports are all seen", () => {
    const source = `import "./a.ts";
import type { B } from "./b.ts";
export * from "./c.ts";
import {
  d,
} from "./d.ts";
// import "./comment.ts"
const text = "http://x"; const e = await import("./e.ts"); const f = import(name);`;
    expect(importsOf(source).map((statement) => statement.specifier)).toEqual([
      "./a.ts",
      "./b.ts",
      "./c.ts",
      "./d.ts",
      "./e.ts",
      undefined,
    ]);
  });

  it.each([
    "Date.now()",
    "new Date()",
    "setTimeout(f, 1)",
    "Math.random()",
    "process.env",
    "Buffer.from(x)",
    "x as Buffer",
  ])("the global of `%s` is seen", (code) => {
    expect(withoutCommentsAndStrings(code).match(impureGlobals)).not.toBeNull();
  });

  it.each([
    "new ArrayBuffer(8)",
    "// Date",
    'const a = "process.env"',
    "this.process(x)",
    "interface A { process: string }",
  ])("`%s` is no global", (code) => {
    expect(withoutCommentsAndStrings(code).match(impureGlobals)).toBeNull();
  });
});

/** Why `file` may not import `specifier`, or `undefined` when it may. */
function refusalOf(file: string, specifier: string | undefined): string | undefined {
  const from = folderOf(file);
  if (specifier === undefined) return "a computed import() hides what is imported";
  if (specifier.startsWith("node:")) {
    if (!from.startsWith("protocols") || pureExceptions[file] === specifier) return undefined;
    return "protocols are pure";
  }
  const target = importedFile(file, specifier);
  if (target === undefined) return packageRefusal(from, specifier);
  if (specifier.startsWith(".") && !specifier.endsWith(".ts")) return "relative imports end in .ts";
  const to = folderOf(target);
  const [own, other] = [from, to].map(workspaceOf);
  if (specifier.startsWith(".") && own !== other) return "other workspaces are imported by name";
  const allowed = DOORS[from];
  if (allowed === undefined) return `${from} has no row in the table of doors`;
  if (to !== from && !allowed.includes(to)) return `no door from ${from} to ${to}`;
  if (to !== from && isProtocol(to) && path.posix.basename(target) !== "index.ts")
    return `enter ${to} through its index.ts`;
  return undefined;
}

function packageRefusal(from: string, specifier: string): string | undefined {
  const name = specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
  const home = PACKAGE_HOMES[name];
  if (home === undefined) return `package ${name} has no home`;
  return home === from ? undefined : `package ${name} belongs to ${home}`;
}

/** A protocol with an index; `protocols/bytes` is plain material and has none. */
function isProtocol(folder: string): boolean {
  return folder.startsWith("protocols/") && folder !== "protocols/bytes";
}

/** The room of a file: the first two levels, as in `src/sessions`, three of a leg, and a workspace's folders in its `src`. */
function folderOf(file: string): string {
  const folders = path.posix
    .dirname(file)
    .replace(/^(packages\/\w+)\/src/, "$1")
    .split("/");
  return folders.slice(0, folders[0] === "packages" || folders[1] === "legs" ? 3 : 2).join("/");
}

function workspaceOf(room: string): string {
  return room.startsWith("packages/") ? room.split("/", 2).join("/") : (room.split("/", 1)[0] ?? "");
}

/** How far down a room is. */
function rankOf(room: string): number {
  return ROOMS.indexOf(room.startsWith("protocols") ? "protocols" : room);
}
