// `node bench/api-requests.mjs [--seconds 4 --repeat 5 --against MAIN_JS --profile FOLDER --only
// PATTERN --write]`: measures what it costs to forward a request to the API server, compared with
// sending it directly. The requests read one pod (one and eight at a time) and list 5,000 pods,
// over HTTP/2. Each round measures every way in turn. `--write` writes
// docs/evidence/api-requests.md.
import { readFileSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { createSelfSignedCertificate } from "@sluice/client/internal/net/self-signed";
import { readFlags } from "./flags.mjs";
import { machine } from "./machine.mjs";
import { accepting, cpuSeconds, freePorts, lineOf, startProgram, stop, temporaryFile } from "./processes.mjs";
import { median } from "./results.mjs";
import { withSpread } from "./text.mjs";

const { values } = readFlags({
  options: {
    seconds: { type: "string", default: "4" },
    repeat: { type: "string", default: "5" },
    against: { type: "string" },
    profile: { type: "string" },
    only: { type: "string", default: "" },
    write: { type: "boolean", default: false },
  },
});
const [seconds, repeat] = [Number(values.seconds), Number(values.repeat)];
const here = (name) => fileURLToPath(new URL(name, import.meta.url));

const NODE_ALONE = "node:http2 and node:https";
const TOKEN = "bench-token";
const pair = await createSelfSignedCertificate(["127.0.0.1"], "sluice-bench");
const [certFile, keyFile] = [temporaryFile("tls.crt", pair.certPem), temporaryFile("tls.key", pair.keyPem)];
const apiServer = startProgram(process.execPath, [
  here("peers/api-answers.mjs"),
  JSON.stringify({ certFile, keyFile }),
]);
const apiServerUrl = `https://127.0.0.1:${await lineOf(apiServer, /listening (\d+)/)}`;

/** Starts a gateway that authenticates by token and impersonates the callers at the API server. */
async function startGateway(name, main) {
  const [port] = await freePorts(1);
  const configuration = {
    apiVersion: "sluice.dev/v1alpha1",
    kind: "GatewayConfiguration",
    listeners: { apiServer: { port, http2: true, tls: { certFile, keyFile } }, admin: { port: 0 } },
    authentication: { tokenAuthFile: temporaryFile(`${name}.csv`, `${TOKEN},alice,alice,"devs"\n`) },
    authorization: { mode: ["AlwaysAllow"] },
    upstreamAPIServer: {
      url: apiServerUrl,
      certificateAuthorityFile: certFile,
      clientCertificateFile: certFile,
      clientKeyFile: keyFile,
    },
    kubelet: { scheme: "http", allowedAddresses: ["127.0.0.0/8"] },
    logging: { level: "error" },
  };
  const flags = ["--no-incremental-marking", "--max-semi-space-size=8"];
  const profile = values.profile ? ["--cpu-prof", `--cpu-prof-dir=${values.profile}`] : [];
  const args = [
    ...flags,
    ...profile,
    main,
    "serve",
    "--config",
    temporaryFile(`${name}.json`, JSON.stringify(configuration)),
  ];
  const child = startProgram(process.execPath, args);
  await accepting(port, child);
  return { name, url: `https://127.0.0.1:${port}`, child };
}

/** Starts a proxy that forwards with Node's own server and client, without any checks. */
async function startForwarder() {
  const child = startProgram(process.execPath, [
    "--max-semi-space-size=8",
    here("peers/api-forwarder.mjs"),
    JSON.stringify({ certFile, keyFile, url: apiServerUrl }),
  ]);
  return {
    name: NODE_ALONE,
    url: `https://127.0.0.1:${await lineOf(child, /listening (\d+)/)}`,
    child,
  };
}

const POD = "/api/v1/namespaces/default/pods/web";
const WORKLOADS = [
  { title: "a pod, one at a time", path: POD, streams: 1 },
  { title: "a pod, eight at a time", path: POD, streams: 8 },
  { title: "a list of 5,000 pods, one at a time", path: "/api/v1/pods", streams: 1 },
].filter(({ title }) => new RegExp(values.only).test(title));
const ways = [
  { name: "straight", url: apiServerUrl },
  await startForwarder(),
  await startGateway("gateway", here("../dist/src/main.js")),
  ...(values.against ? [await startGateway("the other build", values.against)] : []),
];

/** Samples by workload and way. */
const samples = new Map(WORKLOADS.map(({ title }) => [title, new Map(ways.map(({ name }) => [name, []]))]));
for (let round = -1; round < repeat; round++) {
  for (const { title, path: asked, streams } of WORKLOADS) {
    for (const { name, url, child } of ways) {
      const before = child ? cpuSeconds(child.pid) : 0;
      const headers = { authorization: `Bearer ${TOKEN}` };
      const options = { url, path: asked, connections: 1, streams, seconds, headers };
      const client = startProgram(process.execPath, [
        here("peers/http2-client.mjs"),
        JSON.stringify(options),
      ]);
      const { answered, medianMs } = JSON.parse(await lineOf(client, /^(\{.*\})$/m));
      const cpuUs = child ? ((cpuSeconds(child.pid) - before) / answered) * 1e6 : 0;
      if (round >= 0) samples.get(title).get(name).push({ medianMs, cpuUs });
    }
  }
}
if (values.profile) {
  for (const { child } of ways) child?.kill("SIGTERM");
  await Promise.all(ways.map(({ child }) => child && new Promise((resolve) => child.once("exit", resolve))));
}
await Promise.all([...ways.flatMap(({ child }) => child ?? []), apiServer].map(stop));

const rows = WORKLOADS.flatMap(({ title }) =>
  ways.map(({ name }) => {
    const ours = samples.get(title).get(name);
    const cpu =
      name === "straight"
        ? ""
        : withSpread(
            ours.map(({ cpuUs }) => cpuUs),
            0,
          );
    const times = withSpread(
      ours.map(({ medianMs }) => medianMs),
      2,
    );
    return `| ${title} | ${name} | ${times} | ${ratioOf(title, name).toFixed(2)}x | ${cpu} |`;
  }),
);
const { cpus, model, node } = machine();
const page = `# Requests forwarded to the API server

CPU of the gateway, of what Node.js' own server and client cost in its place: ${WORKLOADS.map(({ title }) => `${title}, ${cpuRatioOf(title).toFixed(1)}x`).join("; ")}.

\`node bench/api-requests.mjs --seconds ${seconds} --repeat ${repeat} --write\`, ${new Date().toISOString().slice(0, 10)}; ${cpus} x ${model}, Node.js ${node}, a load average of ${loadavg()[0].toFixed(1)} at the
end. Where that is above the number of cores other programs took part, and only the ratios of one run hold. One HTTP/2 connection over TLS to a server that
answers from memory, straight and through a gateway that authenticates by token and impersonates the caller. Medians of ${repeat} rounds in turns, with minimum and maximum.

| request | way | ms | of straight | CPU of the gateway, us |
|---|---|---|---|---|
${rows.join("\n")}
`;
console.log(page);
if (values.write) {
  const file = new URL("../docs/evidence/api-requests.md", import.meta.url);
  // Other runs write the sections, so this one keeps them.
  const [, ...sections] = readFileSync(file, "utf8").split(/^(?=## )/m);
  writeFileSync(file, [page, ...sections].join("\n"));
}
process.exit();

/** The median of each round's ratio to the direct way's time. */
function ratioOf(title, name) {
  const [straight, own] = ["straight", name].map((way) => samples.get(title).get(way));
  return median(own.map(({ medianMs }, round) => medianMs / straight[round].medianMs));
}

function cpuRatioOf(title) {
  const [own, nodes] = ["gateway", NODE_ALONE].map((way) => samples.get(title).get(way));
  return median(own.map(({ cpuUs }, round) => cpuUs / nodes[round].cpuUs));
}
