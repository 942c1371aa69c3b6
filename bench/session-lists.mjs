// `node bench/session-lists.mjs [--sessions 10000 --replicas 3 --repeat 9 --ends 5 --write]`: lists
// all sessions through the API group, as a whole and in the pages that kubectl requests. The
// replicas use the gateway's peer servers and mutual TLS; their sessions are rows without sockets.
// All replicas share this process, so their CPU adds up. Then ends kubectl's sessions in a demo.
// `--write` writes docs/evidence/session-lists.md.
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createSelfSignedCertificate } from "@sluice/client/internal/net/self-signed";
import { SessionClock } from "@sluice/client/internal/net/session-clock";
import { UpstreamTls } from "@sluice/client/internal/net/tls";
import { SessionDirectory } from "../dist/src/app/session-directory.js";
import { defaultConfiguration } from "../dist/src/config/configuration.js";
import { createLogger } from "../dist/src/observability/logger.js";
import { PeerClient } from "../dist/src/peers/peer-client.js";
import { createPeerServer } from "../dist/src/peers/peer-server.js";
import { Peers } from "../dist/src/peers/peers.js";
import { SessionsApi } from "../dist/src/session-api/sessions-api.js";
import { newReplicaId } from "../dist/src/sessions/session-id.js";
import { Sessions } from "../dist/src/sessions/sessions.js";
import { machineLine, table } from "./document.mjs";
import { readFlags } from "./flags.mjs";
import { median } from "./results.mjs";
import { measureEnds } from "./session-ends.mjs";
import { withSpread } from "./text.mjs";

const { values } = readFlags({
  options: {
    sessions: { type: "string", default: "10000" },
    replicas: { type: "string", default: "3" },
    repeat: { type: "string", default: "9" },
    ends: { type: "string", default: "5" },
    write: { type: "boolean", default: false },
  },
});
const [sessions, replicas, repeat] = [values.sessions, values.replicas, values.repeat].map(Number);
const NAME = "sluice-peer";
const { certPem: cert, keyPem: key } = await createSelfSignedCertificate([NAME], NAME);
const { limits, timeouts } = defaultConfiguration();
const logger = createLogger({ level: "error" });

const started = Array.from({ length: replicas }, () => {
  const replicaId = newReplicaId();
  const registry = new Sessions(sessions, replicaId);
  for (let index = 0; index < Math.ceil(sessions / replicas); index++)
    registry.add(row(registry.newId(), index));
  return { replicaId, registry };
});

function row(id, index) {
  const details = {
    container: "main",
    command: ["sh", "-l"],
    tty: true,
    stdin: true,
    groups: [],
    client: { address: "10.0.0.1", agent: "kubectl" },
    protocol: "v5.channel.k8s.io",
  };
  const info = {
    id,
    subresource: "exec",
    namespace: `team-${index % 100}`,
    pod: `api-7d9f8b6c5d-${index}`,
    node: `worker-${index % 500}.example.net`,
    user: `user-${index % 200}@example.net`,
    plan: { kind: "translate", reason: "node-speaks-spdy" },
    startedAt: new Date(),
    details,
  };
  return { info, isOver: false, downstreamBytes: 4_096, upstreamBytes: 128, observe: () => () => {} };
}

const addresses = [];
const servers = [];
for (const { replicaId, registry } of started) {
  const directory = new SessionDirectory({ replicaId, registries: () => [registry], peers: () => undefined });
  const server = createPeerServer({
    tls: { cert, key, clientAuthorities: [cert] },
    name: NAME,
    replica: replicaId,
    sessions: directory,
    gateway: { sessions: registry, clock: new SessionClock(), limits, timeouts, logger },
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  addresses.push({ name: `127.0.0.1:${port}`, host: "127.0.0.1", port });
  servers.push(server);
}

const [{ replicaId, registry }] = started;
const tls = new UpstreamTls({ ca: cert, certificate: cert, key, serverName: NAME });
const peers = new Peers({
  addresses: { list: () => addresses },
  client: new PeerClient(tls, timeouts),
  id: replicaId,
  maxRelays: 1,
  responseMs: 1_000,
  onRelay: () => {},
});
const directory = new SessionDirectory({ replicaId, registries: () => [registry], peers: () => peers });
const api = new SessionsApi(directory);
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

async function list(accept, limit) {
  const [begun, cpu] = [performance.now(), process.cpuUsage()];
  let [listed, bytes] = [0, 0];
  for (let next = ""; ; ) {
    const query = new URLSearchParams({
      ...(limit > 0 && { limit }),
      ...(next !== "" && { continue: next }),
    });
    const path = "/apis/sluice.dev/v1alpha1/streamingsessions";
    const { status, body } = await api.answer({
      method: "GET",
      path,
      query,
      accept,
      userName: "",
      reason: "",
    });
    const page = JSON.parse(Buffer.from(body).toString());
    if (status !== 200) throw new Error(`${status}: ${page.message}`);
    listed += (page.rows ?? page.items).length;
    bytes += body.byteLength;
    next = page.metadata.continue ?? "";
    if (next !== "") continue;
    const { user, system } = process.cpuUsage(cpu);
    return { ms: performance.now() - begun, cpuMs: (user + system) / 1_000, listed, bytes };
  }
}

const lists = [];
console.log(`${sessions} sessions over ${replicas} replicas, ${repeat} lists of each form`);
for (const [name, accept, limit] of [
  ["Table, pages of 500 (kubectl get -A)", TABLE, 500],
  ["Table, whole", TABLE, 0],
  ["objects, whole", "application/json", 0],
]) {
  await list(accept, limit);
  const results = [];
  for (let round = 0; round < repeat; round++) results.push(await list(accept, limit));
  const times = results.map(({ ms }) => ms);
  const cpuMs = Math.round(median(results.map((result) => result.cpuMs)));
  const [{ listed, bytes }] = results;
  lists.push([name, withSpread(times, 0), `${cpuMs}`, `${listed}`, `${bytes}`]);
}
const listTable = table(["list", "ms", "CPU of all replicas, ms", "sessions", "bytes"], lists);
console.log(listTable);
api.stop();
for (const server of servers) server.close();

const ends = Number(values.ends) > 0 ? await measureEnds(Number(values.ends)) : new Map();
const endRows = Array.from(ends, ([title, { ms, codes }]) => [
  title,
  withSpread(ms, 0),
  [...codes].join(", "),
]);
const endTable = table(["kubectl's protocol, plan", "kubectl's exit, ms", "exit code"], endRows);
console.log(endTable);
if (values.write)
  writeFileSync(
    new URL("../docs/evidence/session-lists.md", import.meta.url),
    `# Lists and ends of sessions

    node bench/session-lists.mjs --sessions ${sessions} --replicas ${replicas} --repeat ${repeat} --ends ${values.ends} --write

${machineLine()}
Medians (minimum-maximum).

## ${sessions} sessions over ${replicas} replicas

Wanted: 1,000 ms. One process has all replicas, so that their CPU adds up.

${listTable}

## From \`sluice sessions end\` to kubectl's exit

Wanted: 1,000 ms. The time includes the start of \`sluice\`.

${endTable}
`,
  );
