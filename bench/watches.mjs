// `node bench/watches.mjs [--users 1 --watches 1000]`: measures the gateway's resident memory for
// users' watches, and what remains after they have left. The client speaks HTTP/2, the API server
// TLS; each watch has received one event.
import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:http2";
import { createServer } from "node:https";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createSelfSignedCertificate } from "@sluice/client/internal/net/self-signed";
import { readFlags } from "./flags.mjs";
import { startGateway, stop, temporaryFile } from "./processes.mjs";

const STREAMS = 200;
const ROUNDS = 3;
/** Garbage collection and the allocator's thresholds adapt to the load with a delay. */
const SETTLE_MS = 5_000;

if (process.argv[2] === "upstream") await serveWatches();
else await measure();

/**
 * Acts as an API server that sends each watch one event. It has its own process, so its memory is
 * not counted.
 */
async function serveWatches() {
  const [, , , cert, key] = process.argv;
  const event = `${JSON.stringify({ type: "ADDED", object: { kind: "Pod", metadata: { name: "a".repeat(900) } } })}\n`;
  const server = createServer({ cert, key }, (_, response) => response.writeHead(200).write(event));
  server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 });
  await once(server, "listening");
  process.send(server.address().port);
  process.once("disconnect", () => process.exit());
}

async function measure() {
  const { values } = readFlags({
    options: {
      users: { type: "string", default: "1" },
      watches: { type: "string", default: "1000" },
      program: { type: "string", default: fileURLToPath(new URL("../dist/src/main.js", import.meta.url)) },
    },
  });
  const [users, watches] = [values.users, values.watches].map(Number);
  const { certPem, keyPem } = await createSelfSignedCertificate();
  const tls = { certFile: temporaryFile("tls.crt", certPem), keyFile: temporaryFile("tls.key", keyPem) };
  const upstream = fork(fileURLToPath(import.meta.url), ["upstream", certPem, keyPem]);
  const [port] = await once(upstream, "message");
  const configuration = temporaryFile(
    "gateway.json",
    JSON.stringify({
      apiVersion: "sluice.dev/v1alpha1",
      kind: "GatewayConfiguration",
      listeners: { apiServer: { port: 0, tls }, admin: { port: 0 } },
      upstreamAPIServer: { url: `https://127.0.0.1:${port}`, certificateAuthorityFile: tls.certFile },
      kubelet: { scheme: "http", allowedAddresses: ["127.0.0.0/8"] },
    }),
  );
  const { child: gateway, url } = await startGateway(configuration, { program: values.program });
  const rssMiB = () =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${gateway.pid}/status`, "utf8"))?.[1]) / 1_024;
  await watchAndLeave(url, 1, 1);
  await delay(SETTLE_MS);
  console.log(`no watch: ${rssMiB().toFixed(0)} MiB`);
  for (let round = 1; round <= ROUNDS; round += 1) {
    await watchAndLeave(url, users, watches, async (began) => {
      await delay(SETTLE_MS);
      const perWatch = (rssMiB() * 1_024) / began;
      console.log(
        `round ${round}: ${began} watches: ${rssMiB().toFixed(0)} MiB, ${perWatch.toFixed(0)} KiB each with the process`,
      );
    });
    let waited = 0;
    for (const seconds of [5, 15, 30]) {
      await delay((seconds - waited) * 1_000);
      waited = seconds;
      console.log(`round ${round}: ${seconds} s after they left: ${rssMiB().toFixed(0)} MiB`);
    }
  }
  await stop(gateway);
  upstream.disconnect();
}

async function watchAndLeave(url, users, watches, meanwhile = async () => {}) {
  const sessions = [];
  let began = 0;
  for (let user = 0; user < users; user += 1) {
    for (let index = 0; index < watches; index += STREAMS) {
      const session = connect(url, { rejectUnauthorized: false });
      sessions.push(session);
      session.on("error", () => {});
      await once(session, "remoteSettings");
      const count = Math.min(STREAMS, watches - index);
      await Promise.all(
        Array.from({ length: count }, async () => {
          const stream = session.request({
            ":path": "/api/v1/pods?watch=true",
            authorization: `Bearer token-${user}`,
          });
          stream.on("error", () => {});
          await once(stream, "data");
          began += 1;
        }),
      );
    }
  }
  await meanwhile(began);
  for (const session of sessions) session.destroy();
}
