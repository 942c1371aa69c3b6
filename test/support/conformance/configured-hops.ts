import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import path from "node:path";
import type { Advice } from "../../../src/conformance/index.ts";
import { type Layer7Proxy, startProxy } from "../layer7-proxies.ts";

/** The default time-outs of these hops divided by what silences are divided by in the same run. */
export const HOP_IDLE_SCALE = 0.05;
const NGINX_TIMEOUT_MS = 60_000 * HOP_IDLE_SCALE;
const HAPROXY_TIMEOUT_MS = 50_000 * HOP_IDLE_SCALE;

/** Settings of an advice by the place that its comments name; the others belong to the server. */
function settingsBy(place: RegExp, product: string, advices: readonly Advice[]): string {
  return advices
    .flatMap(({ settings }) => (settings[product] ?? "").split(/(?=^# in )/m))
    .filter((block) => place.test(block))
    .join("\n");
}

/** nginx as it is when only proxy_pass is written, and with what a report advises. */
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
${settingsBy(/^(?!# in )/, "nginx", advices)}
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

/** HAProxy with the time-outs of Debian's haproxy.cfg, and with what a report advises. */
export function startAdvisedHaproxy(upstreamPort: number, advices: readonly Advice[]): Promise<Layer7Proxy> {
  return startProxy((folder, port) => {
    const file = path.join(folder, "haproxy.cfg");
    const settings = settingsBy(/^(?!# in )/, "HAProxy", advices).replace(/^bind .*$/m, "");
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
${settings}
frontend streams
  bind 127.0.0.1:${port} ssl crt ${folder}/tls.pem
  default_backend server
backend server
  server one 127.0.0.1:${upstreamPort} ssl verify none
`,
    );
    return ["haproxy", "-db", "-f", file];
  });
}

/** `kubectl proxy` on a free port of loopback. */
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
