// `node bench/port-forwards.mjs [--repeat 5 --connections 10000 --seconds 3]`: measures kubectl's
// port-forward with `sessions.portForward.connections` shared, as in Kubernetes, and separate, in
// turns. Measures the first byte of a connection, one at a time and six at once; echoes over 19
// connections, alone and beside one whose server reads nothing; and how many connections kubectl
// survives if 1 % are reset. KUBECTL names another program. Takes two minutes.
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { createSelfSignedCertificate } from "@sluice/client/internal/net/self-signed";
import { createFakeNode } from "@sluice/lab/fake-node/fake-node";
import { table } from "./document.mjs";
import { readFlags } from "./flags.mjs";
import { lineOf, startGateway, startProgram, stop, temporaryFile } from "./processes.mjs";
import { median } from "./results.mjs";
import { withSpread } from "./text.mjs";

const { values } = readFlags({
  options: {
    repeat: { type: "string", default: "5" },
    connections: { type: "string", default: "10000" },
    seconds: { type: "string", default: "3" },
  },
});
const [repeat, connections, seconds] = ["repeat", "connections", "seconds"].map((name) =>
  Number(values[name]),
);
const kubectl = process.env.KUBECTL ?? "kubectl";
const program = new URL("../dist/src/main.js", import.meta.url).pathname;
const [ECHO, DEAF, RESETTING] = [7, 9, 13];
const TIMED = 200;
/** As many connections as a browser opens to one host. */
const AT_ONCE = 6;
const BESIDE = 19;
const RESET_EACH = 100;
/** Less than Sluice buffers for one connection whose server does not read. */
const STALLED_BYTES = 128 * 1024;
const MESSAGE = Buffer.alloc(16 * 1024, "echo");

const node = await startNode();
const ways = {};
for (const way of ["shared", "separate"]) ways[way] = await startWay(way);
const listsOf = () => Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
const samples = { turn: listsOf(), burst: listsOf(), alone: listsOf(), beside: listsOf() };
for (let round = -1; round < repeat; round += 1)
  for (const [way, { kubeconfig }] of Object.entries(ways)) {
    const figures = await measured(kubeconfig);
    if (round < 0) continue;
    for (const [name, figure] of Object.entries(figures)) samples[name][way].push(figure);
  }
const rows = Object.keys(ways).map((way) => [
  way,
  withSpread(samples.turn[way], 2),
  withSpread(samples.burst[way], 2),
  withSpread(samples.alone[way], 0),
  withSpread(samples.beside[way], 0),
  `${(median(samples.beside[way]) / median(samples.alone[way])).toFixed(2)}x`,
]);
for (const row of rows) row.push(await endurance(ways[row[0]].kubeconfig));
const firstOf = (name) => (median(samples[name].separate) / median(samples[name].shared)).toFixed(2);
const columns = [
  "`connections`",
  "first byte, in turn",
  `first byte, ${AT_ONCE} at once`,
  `${BESIDE} alone, MiB/s`,
  "beside a stalled one",
  "over alone",
  "1 % reset",
];
console.log(
  `Node.js ${process.versions.node}; medians of ${repeat} with minimum and maximum; first bytes in ms\n`,
);
console.log(table(columns, rows));
console.log(
  `\nFirst byte, separate over shared: ${firstOf("turn")}x in turn, ${firstOf("burst")}x ${AT_ONCE} at once.`,
);
for (const { child } of Object.values(ways)) await stop(child);
await node.close();
process.exit(0);

async function startNode() {
  const listen = async (onConnection) => {
    const server = createServer({ pauseOnConnect: true }, (socket) => {
      socket.on("error", () => {});
      onConnection(socket);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    return server.address().port;
  };
  const ports = new Map([
    [ECHO, await listen((socket) => socket.setNoDelay(true).pipe(socket))],
    [DEAF, await listen(() => {})],
    [RESETTING, await listen((socket) => socket.resetAndDestroy())],
  ]);
  const pod = { namespace: "default", name: "web", uid: "u1", containers: [{ name: "main" }], ports };
  const tls = await createSelfSignedCertificate();
  const node = await createFakeNode({ name: "node", declaresWebSockets: false, pods: [pod], tls });
  return Object.assign(node, { certPem: tls.certPem });
}

/** Starts a gateway, and writes a kubeconfig for it. */
async function startWay(way) {
  const { certPem, keyPem } = await createSelfSignedCertificate();
  const file = (name, content) => temporaryFile(`${way}-${name}`, content);
  const objects = [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } },
    {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "node" },
      status: {
        addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
        daemonEndpoints: { kubeletEndpoint: { Port: node.port } },
        conditions: [{ type: "Ready", status: "True", reason: "KubeletReady" }],
      },
    },
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "web", namespace: "default", uid: "u1" },
      spec: { nodeName: "node", containers: [{ name: "main", image: "i" }] },
      status: { phase: "Running", podIP: "127.0.0.1" },
    },
  ];
  const configuration = {
    apiVersion: "sluice.dev/v1alpha1",
    kind: "GatewayConfiguration",
    listeners: {
      apiServer: { port: 0, tls: { certFile: file("tls.crt", certPem), keyFile: file("tls.key", keyPem) } },
      admin: { port: 0 },
    },
    cluster: {
      manifests: [file("cluster.json", JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }))],
    },
    authentication: { tokenAuthFile: file("tokens.csv", 'secret,jane,u,"system:masters"\n') },
    authorization: { mode: ["AlwaysAllow"] },
    kubelet: {
      certificateAuthorityFile: file("node.crt", node.certPem),
      allowedAddresses: ["127.0.0.0/8"],
    },
    sessions: { portForward: { connections: way } },
  };
  const { child, url } = await startGateway(file("gateway.json", JSON.stringify(configuration)), { program });
  const named = (name, kind, value) => ({ name, [kind]: value });
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "c",
    clusters: [
      named("c", "cluster", {
        server: url,
        "certificate-authority-data": Buffer.from(certPem).toString("base64"),
      }),
    ],
    users: [named("u", "user", { token: "secret" })],
    contexts: [named("c", "context", { cluster: "c", user: "u" })],
  };
  return { child, kubeconfig: file("kubeconfig", JSON.stringify(kubeconfig)) };
}

async function startForward(kubeconfig) {
  const pairs = [ECHO, DEAF, RESETTING].map((port) => `:${port}`);
  const command = ["--kubeconfig", kubeconfig, "port-forward", "--address", "127.0.0.1", "pod/web", ...pairs];
  const child = startProgram(kubectl, command);
  const found = await lineOf(child, /((?:Forwarding from \S+ -> \d+\n){3})/);
  const ports = new Map(
    [...found.matchAll(/:(\d+) -> (\d+)/g)].map(([, local, remote]) => [Number(remote), Number(local)]),
  );
  return { child, ports };
}

async function measured(kubeconfig) {
  const { child, ports } = await startForward(kubeconfig);
  await firstBytes(ports.get(ECHO), 20, 1);
  const turn = await firstBytes(ports.get(ECHO), TIMED, 1);
  const burst = await firstBytes(ports.get(ECHO), TIMED, AT_ONCE);
  // Measured before and after the stalled connection, so that both cases are equally warm.
  const before = await echoedMib(ports.get(ECHO));
  const stalled = connect(ports.get(DEAF), "127.0.0.1");
  stalled.on("error", () => {});
  await once(stalled, "connect");
  stalled.write(Buffer.alloc(STALLED_BYTES));
  const beside = await echoedMib(ports.get(ECHO));
  stalled.destroy();
  const alone = (before + (await echoedMib(ports.get(ECHO)))) / 2;
  await stop(child);
  return { turn, burst, alone, beside };
}

/** The median time from the start of a connection to its first byte, in milliseconds. */
async function firstBytes(port, count, atOnce) {
  const taken = [];
  while (taken.length < count)
    taken.push(...(await Promise.all(Array.from({ length: atOnce }, () => echo(port)))));
  return median(taken);
}

/** Undefined if the connection ended without an echo. */
async function echo(port) {
  const startMs = performance.now();
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  socket.write("x");
  const firstMs = await new Promise((resolve) => {
    socket.once("data", () => resolve(performance.now() - startMs));
    socket.once("error", () => resolve(undefined)).once("close", () => resolve(undefined));
  });
  socket.destroy();
  return firstMs;
}

/** The throughput of connections that each wait for their echo, in MiB a second. */
async function echoedMib(port) {
  let bytes = 0;
  const endMs = performance.now() + seconds * 1000;
  await Promise.all(
    Array.from({ length: BESIDE }, async () => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      while (performance.now() < endMs) {
        socket.write(MESSAGE);
        for (let missing = MESSAGE.length; missing > 0; ) {
          const [part] = await once(socket, "data", { signal: AbortSignal.timeout(60_000) });
          missing -= part.length;
          bytes += part.length;
        }
      }
      socket.destroy();
    }),
  );
  return bytes / seconds / 1024 / 1024;
}

/** The number of short connections that kubectl survives, including those that are reset. */
async function endurance(kubeconfig) {
  const { child, ports } = await startForward(kubeconfig);
  let count = 0;
  for (; count < connections && child.exitCode === null; count += 1) {
    const isReset = count % RESET_EACH === RESET_EACH / 2;
    const firstMs = await echo(ports.get(isReset ? RESETTING : ECHO));
    if (!isReset && firstMs === undefined && child.exitCode === null) break;
  }
  const isAlive = child.exitCode === null && count === connections;
  await stop(child);
  return isAlive ? `alive after ${count}` : `ended after ${count}`;
}
