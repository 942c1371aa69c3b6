import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { parse } from "yaml";
import type { Advice } from "../../../packages/lab/src/conformance/advice.ts";
import { type Layer7Proxy, startProxy } from "../layer7-proxies.ts";

/** These hops' default timeouts, divided by the same number as the silences of the run. */
export const HOP_IDLE_SCALE = 0.05;
const NGINX_TIMEOUT_MS = 60_000 * HOP_IDLE_SCALE;
const HAPROXY_TIMEOUT_MS = 50_000 * HOP_IDLE_SCALE;

const ENVOY_IDLE_TIMEOUT_S = 300 * HOP_IDLE_SCALE;
const ENVOY_TYPES = "type.googleapis.com/envoy.extensions";

/** The settings of some advice, by the place that its comments name. */
function settingsBy(place: RegExp, product: string, advices: readonly Advice[]): string {
  return blocksBy(place, product, advices).join("\n");
}

function blocksBy(place: RegExp, product: string, advices: readonly Advice[]): string[] {
  return advices
    .flatMap(({ settings }) => (settings[product] ?? "").split(/(?=^# in )/m))
    .filter((block) => place.test(block));
}

/** nginx with only proxy_pass configured, and with the settings that a report advises. */
export function startAdvisedNginx(upstreamPort: number, advices: readonly Advice[]): Promise<Layer7Proxy> {
  return startProxy((folder, port) => {
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map((name) => `${name}_temp_path ${folder}/${name};`)
      .join(" ");
    const file = path.join(folder, "nginx.conf");
    writeFileSync(
      file,
      `pid ${folder}/pid; error_log ${folder}/error.log;
events {
${settingsBy(/^# in events/, "nginx", advices)}
}
http {
${temporary} access_log off;
proxy_read_timeout ${NGINX_TIMEOUT_MS}ms; proxy_send_timeout ${NGINX_TIMEOUT_MS}ms;
${settingsBy(/^# in http/, "nginx", advices)}
server {
listen 127.0.0.1:${port} ssl; ssl_certificate ${folder}/tls.crt; ssl_certificate_key ${folder}/tls.key;
${settingsBy(/^# in server/, "nginx", advices)}
location / {
proxy_pass https://127.0.0.1:${upstreamPort};
${settingsBy(/^# in location/, "nginx", advices)}
}
}
}
`,
    );
    return ["nginx", "-c", file, "-e", `${folder}/error.log`, "-g", "daemon off; master_process off;"];
  });
}

/**
 * HAProxy with the timeouts of Debian's haproxy.cfg, and with the settings that a report advises.
 */
export function startAdvisedHaproxy(upstreamPort: number, advices: readonly Advice[]): Promise<Layer7Proxy> {
  return startProxy((folder, port) => {
    const file = path.join(folder, "haproxy.cfg");
    const frontend = settingsBy(/^# in frontend/, "HAProxy", advices) || "bind :443 ssl crt tls.pem";
    writeFileSync(
      file,
      `global
  log stderr local0 notice
${settingsBy(/^# in global/, "HAProxy", advices)}
defaults
  mode http
  timeout connect 5000
  timeout client ${HAPROXY_TIMEOUT_MS}
  timeout server ${HAPROXY_TIMEOUT_MS}
${settingsBy(/^# in defaults/, "HAProxy", advices)}
frontend streams
${frontend.replace("bind :443", `bind 127.0.0.1:${port}`).replace("tls.pem", `${folder}/tls.pem`)}
  default_backend server
backend server
  server one 127.0.0.1:${upstreamPort} ssl verify none
`,
    );
    return ["haproxy", "-db", "-f", file];
  });
}

/** The places of Envoy's advice in the configuration below. */
const ENVOY_PLACES = ["http_connection_manager", "route", "cluster"] as const;

/**
 * Envoy with the first configuration of its documentation, and with the settings that a report
 * advises. The idle timeout is the default, divided.
 */
export function startAdvisedEnvoy(
  program: string,
  upstreamPort: number,
  advices: readonly Advice[],
): Promise<Layer7Proxy> {
  const [manager, route, cluster] = ENVOY_PLACES.map(
    (place): Record<string, unknown> =>
      Object.assign(
        {},
        ...blocksBy(new RegExp(`^# in ${place}$`, "m"), "Envoy", advices).map((text) => parse(text)),
      ),
  );
  return startProxy((folder, port) => {
    const file = path.join(folder, "envoy.json");
    const tls = (name: string, fields: object): object => ({
      name: "envoy.transport_sockets.tls",
      typed_config: { "@type": `${ENVOY_TYPES}.transport_sockets.tls.v3.${name}`, ...fields },
    });
    const pair = {
      certificate_chain: { filename: `${folder}/tls.crt` },
      private_key: { filename: `${folder}/tls.key` },
    };
    const server = { socket_address: { address: "127.0.0.1", port_value: upstreamPort } };
    const filter = {
      "@type": `${ENVOY_TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
      stat_prefix: "streams",
      stream_idle_timeout: `${ENVOY_IDLE_TIMEOUT_S}s`,
      http_filters: [
        {
          name: "envoy.filters.http.router",
          typed_config: { "@type": `${ENVOY_TYPES}.filters.http.router.v3.Router` },
        },
      ],
      route_config: {
        virtual_hosts: [
          {
            name: "all",
            domains: ["*"],
            routes: [
              {
                match: { prefix: "/" },
                route: { cluster: "server", ...route },
              },
            ],
          },
        ],
      },
      ...manager,
    };
    const listener = {
      address: { socket_address: { address: "127.0.0.1", port_value: port } },
      filter_chains: [
        {
          filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: filter }],
          transport_socket: tls("DownstreamTlsContext", { common_tls_context: { tls_certificates: [pair] } }),
        },
      ],
    };
    const upstream = {
      name: "server",
      load_assignment: {
        cluster_name: "server",
        endpoints: [{ lb_endpoints: [{ endpoint: { address: server } }] }],
      },
      transport_socket: tls("UpstreamTlsContext", {}),
      ...cluster,
    };
    writeFileSync(
      file,
      JSON.stringify({ static_resources: { listeners: [listener], clusters: [upstream] } }),
    );
    return [program, "-c", file, "--concurrency", "1", "--log-level", "warning", "--disable-hot-restart"];
  });
}

/** Starts `kubectl proxy` on a free port of loopback. */
export async function startKubectlProxy(
  kubectl: string,
  kubeconfig: string,
  flags: readonly string[],
): Promise<{ url: string; stop(): Promise<void> }> {
  const child = spawn(kubectl, ["--kubeconfig", kubeconfig, "proxy", "--port=0", ...flags], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for await (const part of child.stdout) {
    output += String(part);
    const address = /127\.0\.0\.1:\d+/.exec(output)?.[0];
    if (address === undefined) continue;
    return {
      url: `http://${address}`,
      stop: async () => {
        if (child.exitCode !== null) return;
        child.kill("SIGKILL");
        await once(child, "exit");
      },
    };
  }
  throw new Error(`kubectl proxy ended: ${output}`);
}
