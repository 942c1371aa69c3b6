import type { CaseGroup } from "./conformance-case.ts";

/**
 * How to fix a hop. The settings for nginx, HAProxy and Envoy can be pasted: explanations are
 * comments, and `# in PLACE` names the block.
 */
export interface Advice {
  readonly title: string;
  /** A short description for all products. */
  readonly text: string;
  /** Maps a product to its settings. */
  readonly settings: Readonly<Record<string, string>>;
}

const upgrade: Advice = {
  title: "Pass upgrades on",
  text: "Connection and Upgrade are for one hop only: a hop that does not set them again turns an upgrade into a plain request. WebSocket and SPDY/3.1 both have to pass, with Sec-WebSocket-Protocol and X-Stream-Protocol-Version unchanged.",
  settings: {
    nginx: `# in http { }
map $http_upgrade $connection_upgrade { default upgrade; "" ""; }
# in location / { }
proxy_http_version 1.1;
proxy_set_header Upgrade $http_upgrade;
proxy_set_header Connection $connection_upgrade;
proxy_set_header Host $http_host;`,
    HAProxy: `# in frontend
# mode http passes upgrades; offer no HTTP/2 to SPDY clients
bind :443 ssl crt tls.pem alpn http/1.1`,
    Envoy: `# in http_connection_manager
upgrade_configs:
- upgrade_type: websocket
- upgrade_type: SPDY/3.1`,
    Traefik: "Upgrades pass without settings; remove headers middlewares that set Connection or Upgrade.",
    "cloud load balancers":
      "Layer-7 load balancers of AWS, Google and Azure pass WebSocket but not SPDY: use a TCP load balancer for kubectl before 1.31, or give old clients `sluice agent`.",
    "kubectl proxy":
      "It refuses exec and attach by default: kubectl proxy --reject-paths='^$'. Only on a loopback address that nothing else can reach.",
  },
};

const timeouts: Advice = {
  title: "Raise the time-outs of silent connections",
  text: "A shell may be silent for hours. Time-outs have to be longer than the server's own (4 h), or PINGs have to count as traffic.",
  settings: {
    nginx: "# in location / { }\nproxy_read_timeout 4h5m;\nproxy_send_timeout 4h5m;",
    HAProxy: "# in defaults\ntimeout tunnel 245m",
    Envoy: `# in http_connection_manager
stream_idle_timeout: 14700s
# in route
timeout: 0s
idle_timeout: 14700s`,
    Traefik: `entryPoints:
  websecure:
    transport:
      respondingTimeouts: { readTimeout: 0s, writeTimeout: 0s, idleTimeout: 14700s }`,
    "cloud load balancers":
      "AWS ALB: idle_timeout.timeout_seconds=4000 (60 by default). Google: timeoutSec of the backend service (30 by default; it limits the whole session of a WebSocket). Azure Application Gateway: requestTimeout. Silent clients such as browsers need PINGs from the server, too.",
  },
};

const buffering: Advice = {
  title: "Pass bytes on as they come",
  text: "Interactive sessions need each message at once, in both directions.",
  settings: {
    nginx: "# in location / { }\nproxy_buffering off;\nproxy_request_buffering off;",
    HAProxy: "# in defaults\nno option http-buffer-request",
    Envoy: "# remove the buffer filter from the routes of the API",
    Traefik: "Remove the buffering middleware from the router of the API.",
    "cloud load balancers": "Switch response buffering and inspection of bodies off for these paths.",
  },
};

const heads: Advice = {
  title: "Allow long request heads",
  text: "The command is in the URL, and a token in a header.",
  settings: {
    nginx: "# in server { }\nlarge_client_header_buffers 4 64k;",
    HAProxy: "# in global\ntune.bufsize 65536",
    Envoy: "# in http_connection_manager\nmax_request_headers_kb: 96",
    Traefik: "entryPoints:\n  websecure:\n    http:\n      maxHeaderBytes: 1048576",
    "cloud load balancers":
      "AWS ALB takes 16 KiB for the request line, Google 64 KiB, both fixed: use files instead of long commands.",
  },
};

const errors: Advice = {
  title: "Pass errors on",
  text: "kubectl shows the message of the server's Status, and decides by the status code; a page of the hop hides both.",
  settings: {
    nginx: "# in location / { }\nproxy_intercept_errors off;",
    HAProxy: "# in defaults\n# and no http-error or errorfile for the API\nretries 0",
    Envoy: "# remove the mappers of local_reply_config that match the server's answers",
    Traefik: "Remove the errors middleware from the router of the API.",
    "cloud load balancers": "Switch custom error responses off for these paths.",
  },
};

const ends: Advice = {
  title: "Let connections end in order",
  text: "Bytes that were not sent yet are lost when a socket is closed while its peer still sends. Kubernetes up to 1.37 does so itself (#142376); a hop that drains its connections, such as Sluice in front of the node, mends it. No time-out or setting of a hop makes up for a server that loses the end.",
  settings: {
    nginx: `# in server { }
# read what the client still sends, so that the end is not reset away
lingering_close always;
lingering_time 10m;
lingering_timeout 60s;
proxy_next_upstream off;`,
    HAProxy: `# in defaults
# mode http closes the client's connection too soon (2.6); mode tcp carries the bytes of an address that serves
# the API alone, without routing and X-Forwarded-For
mode tcp`,
    Envoy: "# in http_connection_manager\ndelayed_close_timeout: 10s",
    Traefik: "transport:\n  lifeCycle: { graceTimeOut: 300s }",
    "cloud load balancers": "Connection draining of at least the length of a session.",
  },
};

const limits: Advice = {
  title: "Allow many long connections",
  text: "Each session is one connection on both sides for as long as it lasts, and one that stalls must hold up no other.",
  settings: {
    nginx: "# in events { }\nworker_connections 4096;\n# and no limit_conn on these paths",
    HAProxy: "# in defaults\nmaxconn 4096\n# and no maxconn on the server line",
    Envoy: "# in cluster\ncircuit_breakers:\n  thresholds: [{ max_connections: 10000, max_requests: 10000 }]",
    Traefik: "Remove the inFlightReq middleware from the router of the API.",
    "cloud load balancers":
      "Check the connections that each target may have, and stickiness that sends all of them to one.",
  },
};

const contents: Advice = {
  title: "Leave the stream alone",
  text: "What is inside an upgraded connection belongs to its two ends. Inspection, compression, rewriting and message limits of WebSockets have to be off for these paths.",
  settings: {
    nginx: "# upgraded connections are not touched: look for a module, or for a hop behind it",
    HAProxy: "# and no filter (compression, spoe) in the proxies of the API",
    Envoy:
      "# remove filters that read bodies (compressor, ext_proc, wasm, ext_authz with bodies) from these routes",
    Traefik: "Remove compress and plugins from the router of the API.",
    "cloud load balancers":
      "Web application firewalls: exclude these paths from the inspection of bodies and WebSockets.",
  },
};

const http2: Advice = {
  title: "Serve the API over HTTP/1.1",
  text: "An upgrade needs HTTP/1.1. Where HTTP/2 is offered with extended CONNECT (RFC 8441), WebSockets have to work over it.",
  settings: {
    nginx: "# listen 443 ssl;  without http2",
    HAProxy: "# in frontend\nbind :443 ssl crt tls.pem alpn http/1.1",
    Envoy: "# in http_connection_manager\nhttp2_protocol_options: { allow_connect: true }",
    Traefik: "tls:\n  options:\n    default: { alpnProtocols: [http/1.1] }",
    "cloud load balancers": "Switch HTTP/2 off on the listener.",
  },
};

const BY_GROUP: Readonly<Record<CaseGroup, Advice>> = {
  negotiation: upgrade,
  headers: upgrade,
  proxies: upgrade,
  errors,
  exec: contents,
  attach: contents,
  cp: contents,
  "port-forward": contents,
  legacy: upgrade,
  framing: contents,
  closing: ends,
  "slow-reader": ends,
  backpressure: limits,
  "abrupt-end": ends,
  sessions: limits,
  http2,
  heartbeat: timeouts,
  idle: timeouts,
  cost: buffering,
};

/** For cases that need more specific advice than their group. */
const BY_NAME: Readonly<Record<string, Advice>> = {
  "headers/long-command": heads,
  "exec/interactive": buffering,
  "port-forward/interactive": buffering,
};

/** How to fix a hop on which this case fails. */
export function adviceFor({ id, group }: { readonly id: string; readonly group: CaseGroup }): Advice {
  return BY_NAME[id.split("/").slice(0, 2).join("/")] ?? BY_GROUP[group];
}
