import { createHash } from "node:crypto";

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
pre { padding: .75rem 1rem; border-left: .3rem solid; white-space: pre-wrap; overflow-wrap: anywhere; }
pre.ok { border-color: #2a8f4a; } pre.failed { border-color: #c33; }
p { overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884; white-space: nowrap; }
td { min-width: 7rem; max-width: 20rem; vertical-align: top; white-space: normal; overflow-wrap: anywhere; }
td.number, th.number { min-width: 0; text-align: right; }
`;

// The script inserts values as text, never as markup, because pod and user names are untrusted.
const SCRIPT = `
const columns = [
  ["subresource", (s) => s.subresource],
  ["pod", (s) => s.namespace + "/" + s.pod],
  ["node", (s) => s.node],
  ["user", (s) => s.user],
  ["path", (s) => s.plan.kind],
  ["why", (s) => s.plan.reason],
  ["age", (s) => age(Date.now() - Date.parse(s.startedAt)), "number"],
  ["to client", (s) => size(s.downstreamBytes), "number"],
  ["to node", (s) => size(s.upstreamBytes), "number"],
];
const nodeColumns = [
  ["node", (n) => n.name],
  ["address", (n) => n.address ?? n.problem],
  ["declares WebSocket", (n) => (n.capability.declaresWebSocket ? "yes" : "no")],
  ["mode", (n) => n.capability.mode],
  ["exec, attach over WebSocket", (n) => pathOf(n, "command")],
  ["port-forward over WebSocket", (n) => pathOf(n, "tunnel")],
  ["circuit", (n) => n.learned?.circuit.state ?? ""],
  ["last failed dial", (n) => n.learned?.circuit.reason ?? ""],
];
const shown = 200;
const byId = (id) => document.getElementById(id);

function age(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const parts = [[Math.floor(seconds / 3600), "h"], [Math.floor(seconds / 60) % 60, "m"], [seconds % 60, "s"]];
  return parts.filter(([n], i) => n > 0 || i === 2).map(([n, unit]) => n + unit).join("");
}
function size(bytes) {
  const power = Math.min(4, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return (bytes / 1024 ** power).toFixed(power === 0 ? 0 : 1) + " " + ["B", "KiB", "MiB", "GiB", "TiB"][power];
}
function pathOf(node, name) {
  const path = node.learned?.paths[name];
  if (!path || path.successes + path.failures === 0) return "";
  const left = path.retryInMs > 0 ? ", left out for " + age(path.retryInMs) : "";
  return path.successes + " worked, " + path.failures + " failed" + (path.lastFailure ? " (" + path.lastFailure + ")" : "") + left;
}
function show(id, list, columns) {
  byId(id + "-count").textContent = list.length > shown ? list.length + ", the first " + shown + " shown" : list.length;
  byId(id + "-rows").replaceChildren(...list.slice(0, shown).map((item) => row("td", columns.map(([, of, kind]) => [of(item), kind]))));
}
function row(tag, cells) {
  const tr = document.createElement("tr");
  for (const [text, kind] of cells) {
    const cell = document.createElement(tag);
    cell.textContent = text;
    if (tag === "th") cell.scope = "col";
    if (kind) cell.className = kind;
    tr.append(cell);
  }
  return tr;
}
async function refresh() {
  try {
    const [health, list, nodes] = await Promise.all([fetch("/readyz?verbose"), fetch("/debug/sessions"), fetch("/debug/nodes")]);
    byId("health").textContent = await health.text();
    byId("health").className = health.ok ? "ok" : "failed";
    show("sessions", await list.json(), columns);
    byId("sessions-missing").textContent = list.headers.get("warning") || "";
    // Those that something is wrong with come first.
    const trouble = (n) => (n.learned && n.learned.circuit.state !== "closed" ? 2 : 0) + (n.capability.avoidedPaths.length > 0 ? 1 : 0);
    show("nodes", (await nodes.json()).sort((one, other) => trouble(other) - trouble(one)), nodeColumns);
  } catch (error) {
    byId("health").textContent = "the gateway does not answer: " + error.message;
    byId("health").className = "failed";
  }
  setTimeout(refresh, 2000);
}
byId("sessions-head").append(row("th", columns.map(([name, , kind]) => [name, kind])));
byId("nodes-head").append(row("th", nodeColumns.map(([name, , kind]) => [name, kind])));
refresh();
`;

/**
 * A static page without external resources. Its script reads `/readyz`, `/debug/sessions` and
 * `/debug/nodes`.
 */
export const INDEX_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sluice</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Sluice</h1>
<p><a href="/livez?verbose">livez</a> &middot; <a href="/readyz?verbose">readyz</a> &middot;
<a href="/metrics">metrics</a> &middot; <a href="/debug/sessions">sessions</a> and
<a href="/debug/nodes">nodes as JSON</a></p>
<h2>Readiness</h2>
<pre id="health" role="status">waiting for an answer</pre>
<h2>Sessions: <span id="sessions-count">0</span></h2>
<p id="sessions-missing" class="failed"></p>
<div class="scroll"><table><thead id="sessions-head"></thead><tbody id="sessions-rows"></tbody></table></div>
<h2>Nodes: <span id="nodes-count">0</span></h2>
<div class="scroll"><table><thead id="nodes-head"></thead><tbody id="nodes-rows"></tbody></table></div>
<noscript><p>The links above show the same without scripts.</p></noscript>
<script>${SCRIPT}</script>
</body>
</html>
`;

/** Allows only the page's own script and style, whatever a name in a table contains. */
export const INDEX_PAGE_POLICY = [
  "default-src 'none'",
  `script-src '${hashSource(SCRIPT)}'`,
  `style-src '${hashSource(STYLE)}'`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

function hashSource(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
