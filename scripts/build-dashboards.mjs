// Writes Grafana's dashboards from the table below. With `--check` only compares, and exits with 1
// if one is stale.
import { readFileSync, writeFileSync } from "node:fs";

const folder = new URL("../deploy/grafana/", import.meta.url);
const WIDTH = 24;
const HEIGHT = 8;
/** The choices of the variables at the top. */
const OF = 'job=~"$job",instance=~"$instance"';
const rate = (metric, labels = "") => `rate(${metric}{${OF}${labels}}[$__rate_interval])`;
const quantile = (share, metric, by = "") =>
  `histogram_quantile(${share}, sum by (le${by}) (${rate(`${metric}_bucket`)}))`;

/** Panels: title, unit, and queries by their legend. */
const dashboards = {
  overview: {
    title: "Sluice: overview",
    panels: [
      [
        "Sessions that run",
        "short",
        { "{{subresource}}": `sum by (subresource) (sluice_streaming_active_sessions{${OF}})` },
      ],
      [
        "Sessions that start",
        "ops",
        {
          "{{subresource}} {{plan}}": `sum by (subresource, plan) (${rate("sluice_streaming_requests_total", ',code="101"')})`,
        },
      ],
      [
        "Streaming requests refused",
        "ops",
        { "{{code}}": `sum by (code) (${rate("sluice_streaming_requests_total", ',code!="101"')})` },
      ],
      [
        "Sessions that failed, of all (objective 0.1 %)",
        "percentunit",
        {
          "5 minutes": 'sluice:session_errors:ratio_rate5m{job=~"$job"}',
          "1 hour": 'sluice:session_errors:ratio_rate1h{job=~"$job"}',
          "6 hours": 'sluice:session_errors:ratio_rate6h{job=~"$job"}',
        },
      ],
      [
        "Set-up time",
        "s",
        {
          "median {{subresource}}": quantile(
            0.5,
            "sluice_streaming_handshake_duration_seconds",
            ", subresource",
          ),
          "99 % {{subresource}}": quantile(
            0.99,
            "sluice_streaming_handshake_duration_seconds",
            ", subresource",
          ),
        },
      ],
      [
        "Bytes carried",
        "Bps",
        { "{{direction}}": `sum by (direction) (${rate("sluice_streaming_bytes_total")})` },
      ],
      [
        "Front door: requests",
        "reqps",
        { "{{code}}": `sum by (code) (${rate("sluice_ingress_requests_total")})` },
      ],
      [
        "Unexpected exceptions",
        "short",
        { "{{where}}": `sum by (where) (increase(sluice_internal_errors_total{${OF}}[$__rate_interval]))` },
      ],
      ["Releases", "short", { "{{version}}": `count by (version) (sluice_build_info{${OF}})` }],
      ["Draining", "short", { "{{instance}}": `sluice_draining{${OF}}` }],
      [
        "Certificates: days left",
        "d",
        {
          "{{listener}} {{instance}}": `(sluice_certificate_expiry_timestamp_seconds{${OF}} - time()) / 86400`,
        },
      ],
      [
        "Configuration as read last",
        "short",
        { "{{instance}}": `sluice_config_last_reload_successful{${OF}}` },
      ],
    ],
  },
  sessions: {
    title: "Sluice: sessions",
    panels: [
      [
        "Ends by side and cause",
        "ops",
        {
          "{{ended_by}}: {{cause}}": `sum by (ended_by, cause) (${rate("sluice_streaming_sessions_ended_total")})`,
        },
      ],
      [
        "Ends by path",
        "ops",
        {
          "{{subresource}} {{plan}}": `sum by (subresource, plan) (${rate("sluice_streaming_sessions_ended_total")})`,
        },
      ],
      [
        "Duration of sessions",
        "s",
        {
          "median {{subresource}}": quantile(
            0.5,
            "sluice_streaming_session_duration_seconds",
            ", subresource",
          ),
          "99 % {{subresource}}": quantile(
            0.99,
            "sluice_streaming_session_duration_seconds",
            ", subresource",
          ),
        },
      ],
      [
        "Connections by Kubernetes' names",
        "short",
        {
          "{{subresource}} {{proxy_type}}": `sum by (subresource, proxy_type) (apiserver_streaming_active_connections{${OF}})`,
        },
      ],
      [
        "WebSocket v5 upgrades",
        "ops",
        { "{{type}}": `sum by (type) (${rate("num_ws_remote_command_v5_total")})` },
      ],
      [
        "Port-forward tunnels",
        "ops",
        { "{{type}}": `sum by (type) (${rate("num_ws_port_forward_v2_total")})` },
      ],
      [
        "Authentication",
        "ops",
        { "{{result}}": `sum by (result) (${rate("sluice_authentication_attempts_total")})` },
      ],
      [
        "Connections refused at the edge",
        "ops",
        { "{{reason}}": `sum by (reason) (${rate("sluice_connections_refused_total")})` },
      ],
      ["Resumable sessions", "short", { "{{state}}": `sum by (state) (sluice_resumable_sessions{${OF}})` }],
      [
        "Resumptions",
        "ops",
        { "{{result}}": `sum by (result) (${rate("sluice_session_resumptions_total")})` },
      ],
      [
        "Audit events",
        "ops",
        { "{{backend}} {{result}}": `sum by (backend, result) (${rate("sluice_audit_events_total")})` },
      ],
      [
        "Audit deliveries that failed",
        "ops",
        { "{{backend}}": `sum by (backend) (${rate("sluice_audit_failures_total")})` },
      ],
    ],
  },
  nodes: {
    title: "Sluice: nodes, cluster and probes",
    panels: [
      [
        "Nodes",
        "short",
        { remembered: `max(sluice_nodes_remembered{${OF}})`, "not dialled": `max(sluice_nodes_dead{${OF}})` },
      ],
      [
        "Nodes with a path left out",
        "short",
        { "{{path}}": `max by (path) (sluice_nodes_avoiding_path{${OF}})` },
      ],
      [
        "Dials that failed",
        "ops",
        {
          failures: `sum(${rate("sluice_node_dial_failures_total")})`,
          "refused by an open circuit": `sum(${rate("sluice_node_circuit_refusals_total")})`,
        },
      ],
      [
        "Outcomes of paths",
        "ops",
        {
          "{{path}} {{result}} {{cause}}": `sum by (path, result, cause) (${rate("sluice_node_path_outcomes_total")})`,
        },
      ],
      [
        "Fallbacks to another path",
        "ops",
        {
          "{{subresource}} {{cause}}": `sum by (subresource, cause) (${rate("sluice_node_fallbacks_total")})`,
        },
      ],
      [
        "Age of the cluster's state",
        "s",
        { "{{kind}}": `max by (kind) (sluice_cluster_stale_seconds{${OF}})` },
      ],
      ["Objects in memory", "short", { "{{kind}}": `max by (kind) (sluice_cluster_objects{${OF}})` }],
      [
        "Changes of the cluster",
        "ops",
        { "{{kind}}": `sum by (kind) (${rate("sluice_cluster_events_total")})` },
      ],
      [
        "Ends of watches",
        "ops",
        { "{{kind}} {{how}}": `sum by (kind, how) (${rate("sluice_cluster_watch_ends_total")})` },
      ],
      [
        "Objects left out",
        "short",
        { "{{kind}}": `sum by (kind) (increase(sluice_cluster_bad_objects_total{${OF}}[$__rate_interval]))` },
      ],
      [
        "Probes",
        "ops",
        { "{{probe_type}} {{result}}": `sum by (probe_type, result) (${rate("prober_probe_total")})` },
      ],
      [
        "Duration of probes, 99 %",
        "s",
        { "{{probe_type}}": quantile(0.99, "prober_probe_duration_seconds", ", probe_type") },
      ],
    ],
  },
  ingress: {
    title: "Sluice: front door",
    panels: [
      [
        "Requests by code",
        "reqps",
        { "{{code}}": `sum by (code) (${rate("sluice_ingress_requests_total")})` },
      ],
      [
        "Requests by protocol",
        "reqps",
        { "{{protocol}}": `sum by (protocol) (${rate("sluice_ingress_requests_total")})` },
      ],
      [
        "Answered with 5xx, of all",
        "percentunit",
        {
          "5xx": `sum(${rate("sluice_ingress_requests_total", ',code=~"5.."')}) / sum(${rate("sluice_ingress_requests_total")})`,
        },
      ],
      [
        "Duration of requests",
        "s",
        {
          median: quantile(0.5, "sluice_ingress_request_duration_seconds"),
          "95 %": quantile(0.95, "sluice_ingress_request_duration_seconds"),
          "99 %": quantile(0.99, "sluice_ingress_request_duration_seconds"),
        },
      ],
      [
        "Tried on another endpoint",
        "ops",
        { retries: `sum(${rate("sluice_ingress_endpoint_retries_total")})` },
      ],
      [
        "Requests by Ingress and Service",
        "reqps",
        {
          "{{namespace}}/{{ingress}} {{service}}": `topk(20, sum by (namespace, ingress, service) (${rate("sluice_ingress_route_requests_total")}))`,
        },
      ],
      [
        "Errors by Ingress and Service: 5xx of all",
        "percentunit",
        {
          "{{namespace}}/{{ingress}} {{service}}": `sum by (namespace, ingress, service) (${rate("sluice_ingress_route_requests_total", ',code="5xx"')}) / sum by (namespace, ingress, service) (${rate("sluice_ingress_route_requests_total")})`,
        },
      ],
      [
        "Time to respond by Ingress and Service, 99 %",
        "s",
        {
          "{{namespace}}/{{ingress}} {{service}}": quantile(
            0.99,
            "sluice_ingress_request_duration_seconds",
            ", namespace, ingress, service",
          ),
        },
      ],
      ["Ingresses in force", "short", { Ingresses: `max(sluice_ingress_objects{${OF}})` }],
      [
        "Ingresses not served as written",
        "short",
        { "{{reason}}": `max by (reason) (sluice_ingress_problems{${OF}})` },
      ],
      ["Routes put in force", "ops", { reloads: `sum(${rate("sluice_ingress_reloads_total")})` }],
    ],
  },
  processes: {
    title: "Sluice: processes",
    panels: [
      ["CPU", "short", { "{{instance}}": `sum by (instance) (${rate("process_cpu_seconds_total")})` }],
      [
        "Resident memory",
        "bytes",
        { "{{instance}}": `sum by (instance) (process_resident_memory_bytes{${OF}})` },
      ],
      ["Heap in use", "bytes", { "{{instance}}": `sum by (instance) (nodejs_heap_size_used_bytes{${OF}})` }],
      [
        "Event loop: 99 % of turns are this late",
        "s",
        { "{{instance}}": `max by (instance) (nodejs_eventloop_lag_p99_seconds{${OF}})` },
      ],
      [
        "Garbage collection",
        "percentunit",
        { "{{kind}}": `sum by (kind) (${rate("nodejs_gc_duration_seconds_sum")})` },
      ],
      ["Descriptors", "short", { "{{instance}}": `sum by (instance) (process_open_fds{${OF}})` }],
      ["Workers that serve", "short", { "{{instance}}": `sluice_workers_ready{${OF}}` }],
      [
        "Workers that ended",
        "short",
        { "{{instance}} {{cause}}": `increase(sluice_workers_ended_total{${OF}}[$__rate_interval])` },
      ],
    ],
  },
};

function panelOf([title, unit, queries], index) {
  return {
    id: index + 1,
    type: "timeseries",
    title,
    datasource: { type: "prometheus", uid: "$datasource" },
    gridPos: { x: (index % 2) * (WIDTH / 2), y: Math.floor(index / 2) * HEIGHT, w: WIDTH / 2, h: HEIGHT },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: {
      legend: { displayMode: "list", placement: "bottom" },
      tooltip: { mode: "multi", sort: "desc" },
    },
    targets: Object.entries(queries).map(([legendFormat, expr], target) => ({
      refId: String.fromCharCode("A".charCodeAt(0) + target),
      expr,
      legendFormat,
    })),
  };
}

function choice(name, label) {
  return {
    name,
    type: "query",
    datasource: { type: "prometheus", uid: "$datasource" },
    query: {
      query: `label_values(sluice_build_info${name === "job" ? "" : '{job=~"$job"}'}, ${label})`,
      refId: name,
    },
    refresh: 2,
    multi: true,
    includeAll: true,
    allValue: ".*",
    current: { text: "All", value: "$__all" },
  };
}

function dashboardOf(name, { title, panels }) {
  return {
    uid: `sluice-${name}`,
    id: null,
    title,
    tags: ["sluice"],
    schemaVersion: 39,
    editable: false,
    refresh: "30s",
    time: { from: "now-3h", to: "now" },
    templating: {
      list: [
        { name: "datasource", type: "datasource", query: "prometheus" },
        choice("job", "job"),
        choice("instance", "instance"),
      ],
    },
    links: [
      {
        title: "Sluice",
        type: "dashboards",
        tags: ["sluice"],
        asDropdown: true,
        keepTime: true,
        includeVars: true,
      },
    ],
    panels: panels.map(panelOf),
  };
}

for (const [name, dashboard] of Object.entries(dashboards)) {
  const file = new URL(`${name}.json`, folder);
  const text = `${JSON.stringify(dashboardOf(name, dashboard), undefined, 2)}\n`;
  if (!process.argv.includes("--check")) writeFileSync(file, text);
  else if (readFileSync(file, "utf8") !== text) {
    console.error(`deploy/grafana/${name}.json is stale: node scripts/build-dashboards.mjs`);
    process.exitCode = 1;
  }
}
