import path from "node:path";
import { describe, expect, it } from "vitest";
import {
  commentsOf,
  importsOf,
  readSource,
  typeScriptFilesIn,
  withoutCommentsAndStrings,
} from "./source-files.ts";

/**
 * The rooms, top to bottom, each with its first file: a room imports only from rooms below it. `protocols` stands for all of them, and
 * each protocol is entered through its index.ts.
 */
const FIRST_FILES: Readonly<Record<string, string>> = {
  src: "src/main.ts",
  "src/cli": "src/cli/command-line.ts",
  "src/app": "src/app/app.ts",
  "src/peers": "src/peers/component.ts",
  "src/ingress": "src/ingress/component.ts",
  "src/legs/agent": "src/legs/agent/agent-leg.ts",
  "src/legs/kubelet": "src/legs/kubelet/kubelet-leg.ts",
  "src/legs/api-server": "src/legs/api-server/api-server-leg.ts",
  "src/conformance": "src/conformance/index.ts",
  "src/load": "src/load/index.ts",
  "src/demo": "src/demo/demo-cluster.ts",
  "src/probes": "src/probes/component.ts",
  "src/client": "src/client/index.ts",
  "src/fake-node": "src/fake-node/index.ts",
  "src/listeners": "src/listeners/listener.ts",
  "src/kubernetes": "src/kubernetes/component.ts",
  "src/sessions": "src/sessions/run-session.ts",
  "src/nodes": "src/nodes/known-nodes.ts",
  "src/access": "src/access/authn/component.ts",
  "src/cluster": "src/cluster/cluster.ts",
  "src/admin": "src/admin/admin-server.ts",
  "src/cri": "src/cri/cri-runtime.ts",
  "src/http": "src/http/upstream/http-exchange.ts",
  "src/net": "src/net/dial.ts",
  "src/api": "src/api/status.ts",
  "src/lifecycle": "src/lifecycle/component.ts",
  "src/observability": "src/observability/logger.ts",
  protocols: "protocols/protocol-error.ts",
  "src/config": "src/config/configuration.ts",
};
const ROOMS = Object.keys(FIRST_FILES);

/**
 * The doors: which rooms each room imports besides itself. A door that is not used is closed, and a room without a row fails: draw its
 * doors first.
 */
const doors: Readonly<Record<string, readonly string[]>> = {
  protocols: [],
  "protocols/bytes": [],
  "protocols/portforward": [],
  "src/config": [],
  "src/observability": ["src/config"],
  "src/lifecycle": ["src/config", "src/observability"],
  "protocols/http1": ["protocols", "protocols/bytes"],
  "protocols/http2": ["protocols/bytes"],
  "protocols/proxy-protocol": ["protocols", "protocols/bytes"],
  "protocols/remotecommand": ["protocols"],
  "protocols/resume": ["protocols", "protocols/bytes"],
  "protocols/spdy": ["protocols", "protocols/bytes"],
  "protocols/tls": ["protocols/bytes"],
  "protocols/websocket": ["protocols", "protocols/bytes"],
  "src/api": ["src/config"],
  "src/net": ["src/config", "src/lifecycle", "src/observability"],
  "src/http": [
    "protocols",
    "protocols/bytes",
    "protocols/http1",
    "protocols/proxy-protocol",
    "protocols/websocket",
    "src/config",
    "src/net",
    "src/observability",
  ],
  "src/cri": ["protocols/remotecommand", "src/api", "src/config"],
  "src/admin": ["src/http", "src/lifecycle", "src/observability"],
  "src/cluster": ["src/api", "src/config"],
  "src/access": [
    "protocols/websocket",
    "src/api",
    "src/config",
    "src/http",
    "src/lifecycle",
    "src/net",
    "src/observability",
  ],
  "src/nodes": ["src/api", "src/cluster", "src/config", "src/net", "src/observability"],
  "src/sessions": [
    "protocols",
    "protocols/bytes",
    "protocols/portforward",
    "protocols/remotecommand",
    "protocols/resume",
    "protocols/spdy",
    "protocols/websocket",
    "src/access",
    "src/api",
    "src/cluster",
    "src/config",
    "src/http",
    "src/net",
    "src/nodes",
    "src/observability",
  ],
  "src/kubernetes": [
    "src/api",
    "src/cluster",
    "src/config",
    "src/http",
    "src/lifecycle",
    "src/net",
    "src/observability",
    "src/sessions",
  ],
  "src/listeners": [
    "protocols",
    "protocols/bytes",
    "protocols/proxy-protocol",
    "src/access",
    "src/api",
    "src/config",
    "src/http",
    "src/lifecycle",
    "src/net",
    "src/observability",
    "src/sessions",
  ],
  "src/fake-node": [
    "protocols",
    "protocols/bytes",
    "protocols/portforward",
    "protocols/remotecommand",
    "protocols/spdy",
    "protocols/websocket",
    "src/api",
    "src/config",
    "src/http",
    "src/net",
    "src/sessions",
  ],
  "src/client": [
    "protocols",
    "protocols/bytes",
    "protocols/portforward",
    "protocols/remotecommand",
    "protocols/resume",
    "protocols/spdy",
    "protocols/websocket",
    "src/config",
    "src/http",
    "src/kubernetes",
    "src/net",
    "src/sessions",
  ],
  "src/probes": [
    "protocols",
    "protocols/bytes",
    "protocols/http1",
    "protocols/http2",
    "src/api",
    "src/cluster",
    "src/config",
    "src/cri",
    "src/http",
    "src/kubernetes",
    "src/lifecycle",
    "src/net",
    "src/nodes",
    "src/observability",
    "src/sessions",
  ],
  "src/demo": [
    "protocols/remotecommand",
    "protocols/spdy",
    "protocols/websocket",
    "src/config",
    "src/fake-node",
    "src/http",
    "src/net",
    "src/observability",
  ],
  "src/load": ["protocols/portforward", "protocols/remotecommand", "src/client", "src/config"],
  "src/conformance": [
    "protocols/portforward",
    "protocols/remotecommand",
    "protocols/spdy",
    "protocols/websocket",
    "src/client",
    "src/http",
    "src/load",
    "src/net",
  ],
  "src/legs/api-server": [
    "protocols/portforward",
    "src/access",
    "src/api",
    "src/cluster",
    "src/config",
    "src/http",
    "src/kubernetes",
    "src/lifecycle",
    "src/listeners",
    "src/net",
    "src/nodes",
    "src/observability",
    "src/sessions",
  ],
  "src/legs/kubelet": [
    "protocols/portforward",
    "protocols/remotecommand",
    "src/access",
    "src/api",
    "src/config",
    "src/cri",
    "src/http",
    "src/lifecycle",
    "src/listeners",
    "src/net",
    "src/observability",
    "src/sessions",
  ],
  "src/legs/agent": [
    "src/access",
    "src/api",
    "src/client",
    "src/config",
    "src/http",
    "src/kubernetes",
    "src/lifecycle",
    "src/listeners",
    "src/net",
    "src/nodes",
    "src/observability",
    "src/sessions",
  ],
  "src/ingress": [
    "protocols/tls",
    "src/access",
    "src/api",
    "src/cluster",
    "src/config",
    "src/http",
    "src/kubernetes",
    "src/lifecycle",
    "src/listeners",
    "src/net",
    "src/observability",
    "src/sessions",
  ],
  "src/peers": [
    "src/access",
    "src/admin",
    "src/api",
    "src/cluster",
    "src/config",
    "src/http",
    "src/lifecycle",
    "src/listeners",
    "src/net",
    "src/observability",
    "src/sessions",
  ],
  "src/app": [
    "src/access",
    "src/admin",
    "src/api",
    "src/cluster",
    "src/config",
    "src/ingress",
    "src/kubernetes",
    "src/legs/agent",
    "src/legs/api-server",
    "src/legs/kubelet",
    "src/lifecycle",
    "src/listeners",
    "src/net",
    "src/nodes",
    "src/observability",
    "src/peers",
    "src/probes",
    "src/sessions",
  ],
  "src/cli": [
    "protocols/remotecommand",
    "src/access",
    "src/api",
    "src/app",
    "src/client",
    "src/cluster",
    "src/config",
    "src/conformance",
    "src/cri",
    "src/demo",
    "src/fake-node",
    "src/http",
    "src/ingress",
    "src/kubernetes",
    "src/legs/agent",
    "src/load",
    "src/net",
    "src/nodes",
    "src/observability",
    "src/probes",
    "src/sessions",
  ],
  src: ["src/cli"],
};

/** The one folder that may import each package; a package without a row may not be imported at all. */
const packageHome: Readonly<Record<string, string>> = {
  pino: "src/observability",
  "prom-client": "src/observability",
  yaml: "src/config",
  jose: "src/access",
  selfsigned: "src/net",
  "@lydell/node-pty": "src/fake-node",
  "@grpc/grpc-js": "src/cri",
  "@grpc/proto-loader": "src/cri",
  "cli-progress": "src/cli",
  "tar-stream": "src/cli",
  iovalkey: "src/access",
  uplot: "src/load",
  autocannon: "src/load",
  "@opentelemetry/api": "src/observability",
  "@opentelemetry/sdk-trace-base": "src/observability",
  "@opentelemetry/exporter-trace-otlp-http": "src/observability",
  "@opentelemetry/resources": "src/observability",
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

  it("every door is used, and leads downwards", () => {
    const used = new Set(
      sources.flatMap((file) =>
        importsOf(readSource(file)).flatMap(({ specifier }) => {
          const to = specifier?.startsWith(".") ? folderOf(targetOf(file, specifier)) : undefined;
          return to === undefined || to === folderOf(file) ? [] : [`${folderOf(file)} -> ${to}`];
        }),
      ),
    );
    const drawn = Object.entries(doors).flatMap(([from, rooms]) => rooms.map((to) => `${from} -> ${to}`));
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
    const rooms = rows.filter(({ name }) => /^(?:src|protocols)\b/.test(name));
    expect(rooms.map(({ name }) => name)).toEqual(ROOMS);
    const packages = rows.filter((row) => !rooms.includes(row)).map(({ name, home }) => [name, home]);
    expect(packages.toSorted()).toEqual(Object.entries(packageHome).toSorted());
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

  it("each kind of server is made in one file, with its bounds", () => {
    const makers = sources.flatMap((file) =>
      Array.from(
        readSource(file).matchAll(/import \{([^}]*)\} from "node:(https?|http2|tls)"/g),
        ([, names = "", module]) =>
          /\bcreate(?:Secure)?Server\b/.test(names) ? [`node:${module}: ${file}`] : [],
      ).flat(),
    );
    expect(makers).toEqual([
      "node:http: src/http/downstream/http1-server.ts",
      "node:https: src/http/downstream/http1-server.ts",
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
    ["protocols/spdy/a.ts", "../../src/sessions/plan.ts", "no door"],
    ["protocols/spdy/a.ts", "../websocket/index.ts", "no door"],
    ["src/sessions/a.ts", "ws", "has no home"],
    ["src/sessions/a.ts", "pino", "belongs to src/observability"],
    ["src/net/a.ts", "../sessions/plan.ts", "no door"],
    ["src/sessions/a.ts", "../../protocols/spdy/session.ts", "index.ts"],
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
    ["src/sessions/a.ts", "../../protocols/spdy/index.ts"],
    ["src/sessions/a.ts", "../nodes/known-nodes.ts"],
    ["src/legs/agent/a.ts", "../../sessions/plan.ts"],
    ["src/sessions/a.ts", "node:http"],
    ["src/access/authn/a.ts", "../authz/b.ts"],
    ["src/observability/a.ts", "pino"],
    ["src/cli/demo/demo.ts", "../../demo/node.ts"],
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
  if (!specifier.startsWith(".")) return packageRefusal(from, specifier);
  if (!specifier.endsWith(".ts")) return "relative imports end in .ts";
  const target = targetOf(file, specifier);
  const to = folderOf(target);
  const allowed = doors[from];
  if (allowed === undefined) return `${from} has no row in the table of doors`;
  if (to !== from && !allowed.includes(to)) return `no door from ${from} to ${to}`;
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

/** The room of a file: the first two levels, as in `src/sessions`, and three of a leg. */
function folderOf(file: string): string {
  const folders = path.posix.dirname(file).split("/");
  return folders.slice(0, folders[1] === "legs" ? 3 : 2).join("/");
}

function targetOf(file: string, specifier: string): string {
  return path.posix.join(path.posix.dirname(file), specifier);
}

/** How far down a room is. */
function rankOf(room: string): number {
  return ROOMS.indexOf(room.startsWith("protocols") ? "protocols" : room);
}
