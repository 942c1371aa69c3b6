import path from "node:path";
import { describe, expect, it } from "vitest";
import { importsOf, readSource, typeScriptFilesIn, withoutCommentsAndStrings } from "./source-files.ts";

/**
 * Which folders each folder may import besides itself. `protocols` stands for the file protocols/protocol-error.ts,
 * `protocols/*` for that and every protocol. A folder without a row fails: a new room needs its doors drawn first.
 */
const mayImport: Readonly<Record<string, readonly string[] | "everything">> = {
  protocols: [],
  "protocols/bytes": ["protocols"],
  "protocols/spdy": ["protocols", "protocols/bytes"],
  "protocols/websocket": ["protocols", "protocols/bytes"],
  "protocols/http1": ["protocols"],
  "protocols/tls": ["protocols", "protocols/bytes"],
  "protocols/http2": ["protocols", "protocols/bytes"],
  "protocols/remotecommand": ["protocols", "protocols/bytes", "protocols/spdy", "protocols/websocket"],
  "protocols/portforward": ["protocols", "protocols/bytes", "protocols/spdy", "protocols/websocket"],
  "protocols/resume": ["protocols", "protocols/bytes"],
  "src/config": [],
  "src/observability": [],
  "src/api": ["src/config"],
  "src/cluster": ["src/api", "src/config"],
  "src/access": ["protocols/websocket", "src/api", "src/config"],
  "src/streaming": ["protocols/*", "src/observability", "src/config"],
  "src/upstream": ["protocols/*", "src/streaming", "src/config", "src/observability", "src/api"],
  "src/gateway": [
    "protocols/*",
    "src/streaming",
    "src/upstream",
    "src/cluster",
    "src/access",
    "src/api",
    "src/config",
    "src/observability",
  ],
  // The live API: kubeconfig, list and watch.
  "src/kubernetes": [
    "src/api",
    "src/cluster",
    "src/config",
    "src/observability",
    "src/streaming",
    "src/upstream",
  ],
  "src/node": [
    "protocols/*",
    "src/gateway", // a session on a node is carried as one at the API server is
    "src/streaming",
    "src/upstream",
    "src/cluster",
    "src/access",
    "src/api",
    "src/config",
    "src/observability",
    "src/probes",
  ],
  "src/probes": [
    "protocols/*",
    "src/streaming",
    "src/upstream",
    "src/api",
    "src/config",
    "src/observability",
  ],
  "src/ingress": [
    "protocols/*",
    "src/streaming",
    "src/upstream",
    "src/gateway",
    "src/cluster",
    "src/api",
    "src/config",
    "src/observability",
  ],
  "src/client": ["protocols/*", "src/streaming", "src/upstream", "src/api", "src/config", "src/kubernetes"],
  // The gateway's own listener, forwarding and carriers, before one API server that the user's kubeconfig names.
  "src/agent": ["src/gateway", "src/upstream", "src/client", "src/kubernetes", "src/access", "src/api"],
  "src/load": ["protocols/*", "src/streaming", "src/upstream", "src/api", "src/config", "src/client"],
  "src/standin": ["protocols/*", "src/streaming", "src/api", "src/config"],
  // Several processes as one gateway: links, hand-over, replacement.
  "src/workers": ["src/access", "src/api", "src/cluster", "src/config", "src/observability"],
  "src/admin": ["src/observability", "src/config", "src/upstream"],
  "src/demo": ["protocols/*", "src/standin", "src/upstream", "src/config", "src/observability"],
  "src/cli": "everything",
  src: "everything", // src/main.ts and src/app.ts, the composition root
};

/** The one folder that may import each package; a package without a row may not be imported at all. */
const packageHome: Readonly<Record<string, string>> = {
  pino: "src/observability",
  "prom-client": "src/observability",
  yaml: "src/config",
  jose: "src/access",
  selfsigned: "src/standin",
  "@lydell/node-pty": "src/standin",
  "@grpc/grpc-js": "src/node",
  "@grpc/proto-loader": "src/node",
  "@kubernetes/client-node": "src/kubernetes",
  "cli-progress": "src/cli",
  "tar-stream": "src/cli",
  uplot: "src/load",
  autocannon: "src/load",
};

/** `protocols` is pure: the only module of Node's that it may import, and from where. SPDY's header blocks need deflate. */
const pureExceptions: Readonly<Record<string, string>> = {
  "protocols/spdy/header-compression.ts": "node:zlib",
};

/** What would let the clock, chance, the environment or Node's own types into `protocols`. */
const impureGlobals =
  /(?<![.\w$])(?:Buffer|Date|performance|process|setTimeout|setInterval|setImmediate|queueMicrotask|fetch|console|globalThis)\b(?!\s*\??:)|\bMath\.random\b|(?<![.\w$])crypto\./g;

const sources = [...typeScriptFilesIn("protocols"), ...typeScriptFilesIn("src")];

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
    ["protocols/spdy/a.ts", "../../src/gateway/plan.ts", "not in the table"],
    ["protocols/spdy/a.ts", "../websocket/index.ts", "not in the table"],
    ["src/streaming/a.ts", "ws", "has no home"],
    ["src/gateway/a.ts", "pino", "belongs to src/observability"],
    ["src/streaming/a.ts", "../gateway/plan.ts", "not in the table"],
    ["src/gateway/a.ts", "../../protocols/spdy/session.ts", "index.ts"],
    ["src/gateway/a.ts", undefined, "computed"],
    ["src/gateway/a.ts", "./plan.js", "end in .ts"],
    ["src/drawer/a.ts", "../config/limits.ts", "has no row"],
  ])("%s may not import %s", (file, specifier, reason) => {
    expect(refusalOf(file, specifier)).toContain(reason);
  });

  it.each([
    ["protocols/spdy/header-compression.ts", "node:zlib"],
    ["protocols/spdy/a.ts", "../protocol-error.ts"],
    ["protocols/spdy/a.ts", "./frames/ping.ts"],
    ["src/gateway/a.ts", "../../protocols/spdy/index.ts"],
    ["src/gateway/a.ts", "../cluster/cluster.ts"],
    ["src/gateway/a.ts", "node:http"],
    ["src/access/authn/a.ts", "../authz/b.ts"],
    ["src/observability/a.ts", "pino"],
    ["src/cli/demo.ts", "../standin/node.ts"],
    ["src/main.ts", "./cli/demo.ts"],
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
  if (!specifier.startsWith(".")) return packageRefusal(from, specifier);
  if (!specifier.endsWith(".ts")) return "relative imports end in .ts";
  const target = path.posix.join(path.posix.dirname(file), specifier);
  const to = folderOf(target);
  const allowed = mayImport[from];
  if (allowed === undefined) return `${from} has no row in the import table`;
  const isOpen =
    allowed === "everything" ||
    allowed.includes(to) ||
    (allowed.includes("protocols/*") && to.startsWith("protocols"));
  if (to !== from && !isOpen) return `${from} -> ${to} is not in the table`;
  if (to !== from && isProtocol(to) && path.posix.basename(target) !== "index.ts")
    return `enter ${to} through its index.ts`;
  return undefined;
}

function packageRefusal(from: string, specifier: string): string | undefined {
  const name = specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
  const home = packageHome[name];
  if (home === undefined) return `package ${name} has no home`;
  return home === from ? undefined : `package ${name} belongs to ${home}`;
}

/** A protocol with an index; `protocols/bytes` is plain material and has none. */
function isProtocol(folder: string): boolean {
  return folder.startsWith("protocols/") && folder !== "protocols/bytes";
}

/** The folder that a rule speaks about: the first two levels, as in `src/gateway`. */
function folderOf(file: string): string {
  return path.posix.dirname(file).split("/").slice(0, 2).join("/");
}
