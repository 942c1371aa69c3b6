// The servers for the bench of probes: TCP, HTTP/1.1, h2c and gRPC health in one process, each on
// several ports, so that no single address runs out of ephemeral ports. Sends its ports over IPC,
// and its CPU on request. Argument `nginx`: nginx serves instead, in one process, which leaves more
// of a small machine to the prober.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttp } from "node:http";
import { createServer as createH2c } from "node:http2";
import { createServer as createTcp } from "node:net";
import os from "node:os";
import path from "node:path";
import { freePorts } from "../processes.mjs";

const PORTS_OF_A_KIND = 8;
const SERVING = Buffer.from([0, 0, 0, 0, 2, 8, 1]);

const listen = (server) =>
  new Promise((resolve) => {
    server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 }, () => resolve(server.address().port));
  });
const ports = async (make) => Promise.all(Array.from({ length: PORTS_OF_A_KIND }, () => listen(make())));

const grpc = () =>
  createH2c().on("stream", (stream) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.on("error", () => {});
    stream.end(SERVING);
  });

const CLOCK_TICKS_A_SECOND = 100;

/** Another process' user and system time, as counted by Linux. */
const cpuMsOf = (pid) => {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ").slice(11, 13);
  return ((Number(user) + Number(system)) * 1_000) / CLOCK_TICKS_A_SECOND;
};

/** nginx serves gRPC's health answer as a file followed by a trailer. */
async function serveByNginx() {
  const [http, h2c, grpc] = [
    await freePorts(PORTS_OF_A_KIND),
    await freePorts(PORTS_OF_A_KIND),
    await freePorts(PORTS_OF_A_KIND),
  ];
  const folder = mkdtempSync(path.join(os.tmpdir(), "sluice-probed-"));
  writeFileSync(path.join(folder, "serving"), SERVING);
  const at = (found, more) => found.map((port) => `listen 127.0.0.1:${port} backlog=4096 ${more};`).join(" ");
  const lines = [
    "daemon off; master_process off; error_log stderr crit;",
    `pid ${folder}/pid;`,
    "events { worker_connections 20000; }",
    `http { access_log off; lingering_close off; root ${folder};`,
    ...["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (name) => `${name}_temp_path ${folder}/${name};`,
    ),
    `server { ${at(http, "")} location / { return 200 ok; } }`,
    `server { ${at(h2c, "http2")} location / { return 200 ok; } }`,
    `server { ${at(grpc, "http2")} location / { error_page 404 =200 /serving; }`,
    "location = /serving { default_type application/grpc; add_trailer grpc-status 0; } } }",
  ];
  writeFileSync(path.join(folder, "nginx.conf"), lines.join("\n"));
  const nginx = spawn("nginx", ["-p", folder, "-c", "nginx.conf"], { stdio: "ignore" });
  process.on("exit", () => {
    nginx.kill();
    rmSync(folder, { recursive: true, force: true });
  });
  nginx.on("exit", () => process.exit(1));
  // nginx listens on all ports before its first answer.
  for (;;) {
    if (
      await fetch(`http://127.0.0.1:${http[0]}/`).then(
        () => true,
        () => false,
      )
    )
      break;
  }
  return { cpuMs: () => cpuMsOf(nginx.pid), found: { tcp: http, http, h2c, grpc } };
}

async function serve() {
  const cpuMs = () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  };
  const found = {
    tcp: await ports(() => createTcp((socket) => socket.on("error", () => {}).resume())),
    http: await ports(() => createHttp((_, response) => response.end("ok"))),
    h2c: await ports(() => createH2c((_, response) => response.end("ok"))),
    grpc: await ports(grpc),
  };
  return { cpuMs, found };
}

const { cpuMs, found } = process.argv[2] === "nginx" ? await serveByNginx() : await serve();
process.on("message", () => process.send({ cpuMs: cpuMs() }));
// However this process ends, nginx must end, too.
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => process.exit());
process.on("disconnect", () => process.exit());
process.send(found);
