import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { notInstalled } from "@sluice/client/internal/config/optional-package";
import { embeddedText, isSingleBinary } from "@sluice/client/internal/config/version";
import { upperUs } from "./latency-counts.ts";
import type { LoadReport } from "./load-report.ts";
import { measuredText, summaryText } from "./summary-text.ts";

const PAGE_STYLE = `
body { font: 15px/1.5 system-ui, sans-serif; max-width: 980px; margin: 2rem auto; padding: 0 1rem; color: #1a1f24; background: #fff; overflow-wrap: anywhere; }
pre { background: #f4f6f8; padding: 1rem; overflow-x: auto; font-size: 13px; overflow-wrap: normal; }
table { border-collapse: collapse; display: block; overflow-x: auto; overflow-wrap: normal; } td, th { text-align: left; padding: .25rem .75rem; border-bottom: 1px solid #d5dbe1; }
td:last-child { min-width: 8rem; overflow-wrap: anywhere; }
tr.pass td:first-child { background: #d3f0d9; } tr.fail td:first-child { background: #f8d0d0; font-weight: 600; }
.number { text-align: right; } h2 { margin-top: 2rem; font-size: 1.1rem; }
`;

/** One self-contained page with the plotting library; it makes no requests. */
export async function htmlReport(report: LoadReport): Promise<string> {
  const { script, style } = await readPlots();
  return htmlPage(
    `sluice load: ${report.plan.kind} ${report.startedAt}`,
    style,
    `<h1>sluice load: ${escapeHtml(report.plan.kind)} over ${escapeHtml(report.plan.protocol)}</h1>
<p>${escapeHtml(planText(report))}</p>
<pre>${escapeHtml(summaryText(report))}</pre>
${thresholdTable(report.thresholds)}<h2>Latency of messages over time</h2>
<div class="plot" id="heat-message"></div>
<h2>Latency until the first byte of a session over time</h2>
<div class="plot" id="heat-firstByte"></div>
<h2>Throughput</h2>
<div class="plot" id="throughput"></div>
<h2>Sessions</h2>
<div class="plot" id="sessions"></div>
<h2>Errors</h2>
${errorTable(report)}
<h2>Plan</h2>
<pre>${escapeHtml(JSON.stringify(report.plan, null, 2))}</pre>
<script type="application/json" id="data">${scriptSafe(JSON.stringify(dataOf(report)))}</script>
<script>${scriptEndSafe(script)}</script>
<script>${PAGE_SCRIPT}</script>
`,
  );
}

/** The plotting library for reports. Throws NotInstalledError if it is missing. */
export async function readPlots(): Promise<{ readonly script: string; readonly style: string }> {
  const [script, style] = await Promise.all([
    readPlotFile("uplot/dist/uPlot.iife.min.js"),
    readPlotFile("uplot/dist/uPlot.min.css"),
  ]);
  return { script, style };
}

async function readPlotFile(name: string): Promise<string> {
  if (isSingleBinary) return embeddedText(name);
  let file: string;
  try {
    file = createRequire(import.meta.url).resolve(name);
  } catch (error) {
    return notInstalled("uplot", "a report in HTML")(error);
  }
  return readFile(file, "utf8");
}

/**
 * If the last second is shorter than this share, it would look like a fall of throughput that did
 * not happen.
 */
const WHOLE_SECOND_MS = 950;

/** The seconds to draw. Includes the run's last one only if it is whole, or the only one. */
function wholeSeconds(perSecond: LoadReport["perSecond"]): LoadReport["perSecond"] {
  const last = perSecond.at(-1);
  if (last === undefined || perSecond.length === 1) return perSecond;
  return last.untilMs - last.second * 1_000 < WHOLE_SECOND_MS ? perSecond.slice(0, -1) : perSecond;
}

/** The page's data, with bucket bounds in milliseconds so that the page needs no bucket arithmetic. */
function dataOf({ perSecond }: LoadReport): unknown {
  return wholeSeconds(perSecond).map(({ latencies, ...second }) => ({
    ...second,
    latencies: Object.fromEntries(
      Object.entries(latencies).map(([name, latency]) => [
        name,
        latency.counts.map(([bucket, count]) => [
          upperUs(bucket - 1) / 1_000,
          upperUs(bucket) / 1_000,
          count,
        ]),
      ]),
    ),
  }));
}

function planText({ plan, startedAt, seconds }: LoadReport): string {
  const rate =
    plan.messagesPerSecond === 0 ? "as fast as they are taken" : `${plan.messagesPerSecond} per second`;
  const inFlight = plan.messagesInFlight > 0 ? `, ${plan.messagesInFlight} in flight in each session` : "";
  const sessions =
    plan.arrivalsPerSecond > 0
      ? `${plan.arrivalsPerSecond} new sessions per second`
      : `${plan.sessions} sessions`;
  return `${startedAt}, ${seconds} s: ${sessions}, direction ${plan.direction}, messages of ${plan.messageBytes} bytes, ${rate}${inFlight}. Latencies count from when something was due, not from when it was sent.`;
}

function thresholdTable(thresholds: LoadReport["thresholds"]): string {
  if (thresholds.length === 0) return "";
  const rows = thresholds.map((judged) => {
    const verdict = judged.isMet ? "pass" : "fail";
    return `<tr class="${verdict}"><td>${verdict}</td><td>${escapeHtml(judged.text)}</td><td class="number">${escapeHtml(measuredText(judged))}</td></tr>`;
  });
  return `<h2>Thresholds</h2>
<table><tr><th></th><th>threshold</th><th>measured</th></tr>${rows.join("")}</table>
`;
}

function errorTable({ errors }: LoadReport): string {
  if (errors.length === 0) return "<p>None.</p>";
  const rows = errors.map(
    ({ leg, kind, count, message }) =>
      `<tr><td>${escapeHtml(leg)}</td><td>${escapeHtml(kind)}</td><td class="number">${count}</td><td>${escapeHtml(message)}</td></tr>`,
  );
  return `<table><tr><th>leg</th><th>kind</th><th>count</th><th>the last one</th></tr>${rows.join("")}</table>`;
}

/** JSON that cannot close its script element, whatever text a server puts into an error. */
function scriptSafe(json: string): string {
  return json.replaceAll("<", "\\u003c");
}

function scriptEndSafe(script: string): string {
  return script.replaceAll("</script", "<\\/script");
}

const PAGE_SCRIPT = `
const seconds = JSON.parse(document.getElementById("data").textContent);
const x = seconds.map((one) => one.second);
const width = Math.min(940, document.body.clientWidth - 32);
const draw = (id, options, data) =>
  new uPlot({ width, height: 260, scales: { x: { time: false } }, ...options }, data, document.getElementById(id));
const line = (label, stroke, more) => ({ label, stroke, width: 2, points: { show: x.length < 3 }, ...more });
const axes = (label) => [{ label: "seconds" }, { label, size: 70 }];
const MIB = 1024 * 1024;
draw("throughput", { series: [{ label: "second" }, line("sent MiB/s", "#0b7285"), line("received MiB/s", "#e8590c")], axes: axes("MiB/s") },
  [x, seconds.map((one) => one.sentBytes / MIB), seconds.map((one) => one.receivedBytes / MIB)]);
draw("sessions", { series: [{ label: "second" }, line("running", "#0b7285"), line("started", "#2b8a3e"), line("failed", "#c2255c")], axes: axes("sessions") },
  [x, seconds.map((one) => one.active), seconds.map((one) => one.started), seconds.map((one) => one.failed)]);
function heat(id, name) {
  const cells = seconds.map((one) => one.latencies[name]);
  const all = cells.flat();
  if (all.length === 0) { document.getElementById(id).textContent = "Nothing was timed."; return; }
  const percentile = (share) => cells.map((some) => {
    const total = some.reduce((sum, [, , count]) => sum + count, 0);
    let seen = 0;
    for (const [, upper, count] of some) { seen += count; if (seen >= share * total) return upper; }
    return null;
  });
  const most = Math.max(...all.map(([, , count]) => count));
  // uPlot's logarithmic axes accept whole decades only.
  const least = 10 ** Math.floor(Math.log10(Math.max(0.001, Math.min(...all.map(([, upper]) => upper)) * 0.97)));
  const top = Math.max(10 * least, 10 ** Math.ceil(Math.log10(Math.max(...all.map(([, upper]) => upper)))));
  draw(id, {
    height: 320,
    series: [{ label: "second" }, line("p50 ms", "#c92a2a"), line("p99 ms", "#1a1f24")],
    scales: { x: { time: false, range: [-0.5, x.length - 0.5] }, y: { distr: 3, range: [least, top] } },
    axes: axes("ms"),
    hooks: { drawClear: [(plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.fillStyle = "#eef1f4"; ctx.fillRect(bbox.left, bbox.top, bbox.width, bbox.height);
      cells.forEach((some, second) => {
        const left = plot.valToPos(second - 0.5, "x", true), right = plot.valToPos(second + 0.5, "x", true);
        for (const [lower, upper, count] of some) {
          const bottom = plot.valToPos(Math.max(lower, least), "y", true), over = plot.valToPos(Math.max(upper, least), "y", true);
          const heat = Math.log(1 + count) / Math.log(1 + most);
          ctx.fillStyle = "hsl(200 70% " + (85 - 55 * heat) + "%)";
          ctx.fillRect(left, over, Math.max(1, right - left), Math.max(1.5, bottom - over));
        }
      });
      ctx.restore();
    }] },
  }, [x, percentile(0.5), percentile(0.99)]);
}
heat("heat-message", "message");
heat("heat-firstByte", "firstByte");
document.body.dataset.drawn = "yes";
`;

/** A page without external requests. Escapes the title; inserts `style` and `body` unchanged. */
export function htmlPage(title: string, style: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>${escapeHtml(title)}</title>
<style>${style}${PAGE_STYLE}</style>
</head>
<body>
${body}</body>
</html>
`;
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
