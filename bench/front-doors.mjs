// Sluice's Ingress listener and its alternatives: how each is started in front of one backend, with
// one plain port and one TLS port.
import { writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { startNginx, startProgram } from "./processes.mjs";

const peer = (name) => fileURLToPath(new URL(`peers/${name}`, import.meta.url));
const program = fileURLToPath(new URL("../dist/src/main.js", import.meta.url));
const NODE_FLAGS = ["--no-incremental-marking", "--max-semi-space-size=8"];

export const serviceTo = (name, port, more = {}) => [
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace: "default" },
    spec: { ports: [{ port: 80, ...more }] },
  },
  {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: `${name}-1`, namespace: "default", labels: { "kubernetes.io/service-name": name } },
    addressType: "IPv4",
    endpoints: [{ addresses: ["127.0.0.1"] }],
    ports: [{ port }],
  },
];

const manifestsFor = (upstreamPort, grpcPort) => [
  {
    apiVersion: "networking.k8s.io/v1",
    kind: "IngressClass",
    metadata: { name: "sluice" },
    spec: { controller: "sluice.dev/ingress-controller" },
  },
  ...serviceTo("app", upstreamPort),
  ...serviceTo("grpc", grpcPort, { appProtocol: "kubernetes.io/h2c" }),
  {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name: "all", namespace: "default" },
    spec: {
      ingressClassName: "sluice",
      defaultBackend: { service: { name: "app", port: { number: 80 } } },
      rules: [
        {
          http: {
            paths: [
              {
                path: "/grpc.health.v1.Health",
                pathType: "Prefix",
                backend: { service: { name: "grpc", port: { number: 80 } } },
              },
            ],
          },
        },
      ],
    },
  },
];

/**
 * Starts a gateway that serves the Ingresses of `manifests` (files or folders) from the settings
 * `ingress` of its listener.
 */
export function startSluice({ main = program, folder, manifests, ingress, adminPort = 0 }) {
  const file = path.join(folder, "gateway.json");
  const configuration = {
    apiVersion: "sluice.dev/v1alpha1",
    kind: "GatewayConfiguration",
    listeners: {
      apiServer: { port: 0 },
      admin: { port: adminPort },
      ingress: { allowedEndpointAddresses: ["127.0.0.0/8"], ...ingress },
    },
    cluster: { manifests },
    logging: { level: "error" },
  };
  writeFileSync(file, JSON.stringify(configuration));
  return startProgram(process.execPath, [...NODE_FLAGS, main, "serve", "--config", file]);
}

const sluice =
  (main) =>
  ({ folder, upstreamPort, grpcPort, port, tlsPort, certFile, keyFile }) => {
    const manifests = path.join(folder, "cluster.json");
    writeFileSync(
      manifests,
      JSON.stringify({ apiVersion: "v1", kind: "List", items: manifestsFor(upstreamPort, grpcPort) }),
    );
    const ingress = { httpPort: port, httpsPort: tlsPort, defaultCertificate: { certFile, keyFile } };
    return startSluice({ main, folder, manifests: [manifests], ingress });
  };

const nginx =
  (buffering) =>
  ({ folder, upstreamPort, grpcPort, port, tlsPort, certFile, keyFile }) => {
    const file = path.join(folder, "nginx.conf");
    writeFileSync(
      file,
      `worker_processes 1; pid ${folder}/nginx.pid; error_log stderr crit; events { worker_connections 1024; }
http { access_log off; client_body_temp_path ${folder}/b; proxy_temp_path ${folder}/p; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  keepalive_requests 10000000; upstream app { server 127.0.0.1:${upstreamPort}; keepalive 64; keepalive_requests 10000000; }
  upstream grpc { server 127.0.0.1:${grpcPort}; keepalive 64; keepalive_requests 10000000; }
  server { listen 127.0.0.1:${port}; listen 127.0.0.1:${tlsPort} ssl http2; ssl_certificate ${certFile}; ssl_certificate_key ${keyFile};
    location /grpc. { grpc_pass grpc://grpc; }
    location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_buffering ${buffering}; } } }
`,
    );
    return startNginx(file, folder);
  };

const haproxy = ({ folder, upstreamPort, grpcPort, port, tlsPort, certPem, keyPem }) => {
  const [file, pem] = [path.join(folder, "haproxy.cfg"), path.join(folder, "both.pem")];
  writeFileSync(pem, `${certPem.trim()}\n${keyPem}`);
  writeFileSync(
    file,
    `global
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 1m
  timeout server 1m
  option forwardfor
  http-reuse always
frontend f
  bind 127.0.0.1:${port}
  bind 127.0.0.1:${tlsPort} ssl crt ${pem} alpn h2,http/1.1
  use_backend g if { path_beg /grpc. }
  default_backend b
backend g
  server s 127.0.0.1:${grpcPort} proto h2
backend b
  server s 127.0.0.1:${upstreamPort}
`,
  );
  return startProgram("haproxy", ["-db", "-f", file]);
};

const library =
  (name) =>
  ({ upstreamPort, port }) =>
    startProgram(process.execPath, [
      peer("http-reverse-proxy.mjs"),
      JSON.stringify({ upstreamPort, port, library: name }),
    ]);

const http2Server =
  (role) =>
  ({ upstreamPort, grpcPort, tlsPort, certFile, keyFile }) =>
    startProgram(process.execPath, [
      peer("http2-server.mjs"),
      JSON.stringify({ port: tlsPort, upstreamPort, grpcPort, certFile, keyFile, role }),
    ]);

/** Start functions by name. `against` is the main.js of another build of Sluice. */
export const frontDoors = (against) => ({
  sluice: sluice(program),
  ...(against && { "sluice, the other build": sluice(against) }),
  "http-proxy": library("http-proxy"),
  httpxy: library("httpxy"),
  "node:http, both sides": library("node:http"),
  "node:http2, which answers": http2Server("answers"),
  "node:http2 and node:http": http2Server("forwards"),
  "node:http2, both sides": http2Server("calls"),
  nginx: nginx("on"),
  "nginx, proxy_buffering off": nginx("off"),
  haproxy,
});
/** The ones that serve only the plain port. */
export const plainOnly = new Set(["http-proxy", "httpxy", "node:http, both sides"]);
/** The ones that forward gRPC to a backend over h2c. */
export const carriesGrpc = new Set([
  "sluice",
  "sluice, the other build",
  "node:http2, both sides",
  "nginx",
  "haproxy",
]);
export const http2Only = new Set([
  "node:http2, which answers",
  "node:http2 and node:http",
  "node:http2, both sides",
]);
