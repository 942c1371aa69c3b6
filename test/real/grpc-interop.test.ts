import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../support/front-door.ts";
import { goPeer } from "../support/go-peers.ts";
import { openClient } from "../support/http/loopback.ts";
import { closedPort } from "../support/misbehaving-servers.ts";
import { describeReal, programOf } from "../support/real-parts.ts";

/** Of grpc/doc/interop-test-descriptions.md, those that need neither credentials of a cloud nor compression. */
const CASES = [
  "empty_unary",
  "large_unary",
  "client_streaming",
  "server_streaming",
  "ping_pong",
  "empty_stream",
  "custom_metadata",
  "status_code_and_message",
  "special_status_message",
  "unimplemented_method",
  "unimplemented_service",
  "cancel_after_begin",
  "cancel_after_first_response",
  "timeout_on_sleeping_server",
];

const folder = mkdtempSync(path.join(tmpdir(), "sluice-grpc-interop-"));
const stops: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
const table: string[] = [];
let serverPort: number;

async function run(program: string, options: readonly string[], port: number): Promise<void> {
  const child: ChildProcess = spawn(program, options, { stdio: "ignore" });
  stops.push(async () => {
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  });
  await eventually(`${program} listens`, async () => {
    const socket = await openClient(port);
    socket.destroy();
    return true;
  });
}

describeReal("go", "grpc-go's interop client to its server", () => {
  beforeAll(async () => {
    serverPort = await closedPort();
    await run(goPeer("grpc-interop", "server"), [`--port=${serverPort}`], serverPort);
  });
  afterAll(async () => {
    for (const stop of stops.reverse()) await stop();
    console.log(`| through | passed | failed |\n|---|---|---|\n${table.join("\n")}`);
  });

  async function passes(through: string, port: number): Promise<void> {
    const failed: string[] = [];
    for (const name of CASES) {
      const options = ["--server_host=127.0.0.1", `--server_port=${port}`, `--test_case=${name}`];
      await promisify(execFile)(goPeer("grpc-interop", "client"), options, { timeout: 30_000 }).catch(
        ({ stderr }: { stderr: string }) => failed.push(`${name}: ${stderr}`),
      );
    }
    const passed = `${CASES.length - failed.length} of ${CASES.length}`;
    table.push(`| ${through} | ${passed} | ${failed.map((text) => text.split(":")[0]).join(", ")} |`);
    expect(failed).toEqual([]);
  }

  it("passes each case through the front door", async () => {
    const door = await FrontDoor.start([
      ...serviceObjects("grpc", [{ port: serverPort }], { appProtocol: "kubernetes.io/h2c" }),
      ingressObject("all", { defaultBackend: backend("grpc") }),
    ]);
    stops.push(() => door.stop());
    await door.serves(1);
    await passes("Sluice", door.httpPort);
  });

  describeReal("nginx", "through nginx", () => {
    it("passes each case", async () => {
      const port = await closedPort();
      const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map((name) => `${name}_temp_path ${folder}/${name};`)
        .join(" ");
      const file = path.join(folder, "nginx.conf");
      writeFileSync(
        file,
        `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 64; }
http { access_log off; ${temporary} client_max_body_size 0;
server { listen 127.0.0.1:${port} http2; location / { grpc_pass grpc://127.0.0.1:${serverPort}; } } }
`,
      );
      await run(programOf("nginx"), ["-p", folder, "-c", file, "-e", `${folder}/error.log`], port);
      await passes("nginx", port);
    });
  });

  describeReal("haproxy", "through HAProxy", () => {
    it("passes each case", async () => {
      const port = await closedPort();
      const file = path.join(folder, "haproxy.cfg");
      writeFileSync(
        file,
        `defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
listen grpc
  bind 127.0.0.1:${port} proto h2
  server grpc 127.0.0.1:${serverPort} proto h2
`,
      );
      await run(programOf("haproxy"), ["-db", "-f", file], port);
      await passes("HAProxy", port);
    });
  });
});
