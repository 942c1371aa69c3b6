import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { RST } from "../../../../protocols/spdy/index.ts";
import { GatewayFiles, TESTER_TOKEN, webOn } from "../../../support/gateway-files.ts";
import { type KubeletScript, ScriptedKubelet } from "../../../support/scripted-kubelet.ts";
import { type ServedGateway, serveGateway } from "../../../support/served-gateway.ts";
import { startSpdyExec } from "../../../support/spdy-exec-client.ts";
import { TunnelClient } from "../../../support/tunnel-client.ts";
import { V5Client } from "../../../support/v5-client.ts";

const AUTHORIZED = { Authorization: `Bearer ${TESTER_TOKEN}` };

/** A node in a process of its own: switches to what is asked, prints its port, accepts streams 1, 3 and 5, and hangs. */
const NODE_PROGRAM = `
  const reply = (id) => Buffer.from([0x80, 3, 0, 2, 0, 0, 0, 4, 0, 0, 0, id]);
  const server = require("node:http").createServer();
  server.on("upgrade", (request, socket) => {
    socket.on("error", () => {});
    const offered = String(request.headers["x-stream-protocol-version"]).split(",")[0];
    socket.write("HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: SPDY/3.1\\r\\nX-Stream-Protocol-Version: " + offered + "\\r\\n\\r\\n");
    socket.once("data", () => { for (const id of [1, 3, 5]) socket.write(reply(id)); socket.resume(); });
  });
  server.listen(0, "127.0.0.1", () => console.log(server.address().port));
`;

/** A client in a process of its own: an exec over WebSocket, prints what comes, and hangs. */
const CLIENT_PROGRAM = `
  const { WebSocket } = require("ws");
  const [url, token] = process.argv.slice(1);
  const socket = new WebSocket(url, "v5.channel.k8s.io", { headers: { Authorization: "Bearer " + token } });
  socket.on("message", () => console.log("running"));
`;

const children: ChildProcess[] = [];
let gateway: ServedGateway | undefined;
let files: GatewayFiles | undefined;
let kubelet: ScriptedKubelet | undefined;

afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  gateway?.child.kill("SIGKILL");
  await gateway?.exited;
  await kubelet?.close();
  files?.remove();
  gateway = files = kubelet = undefined;
});

function run(program: string, ...args: string[]): ChildProcess {
  const child = spawn(process.execPath, ["-e", program, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  return child;
}

async function firstLineOf(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error("started without a pipe");
  return String((await once(child.stdout, "data"))[0]).trim();
}

async function serve(kubeletPort: number, gracePeriod = "0s"): Promise<ServedGateway> {
  files = new GatewayFiles({ ...webOn(kubeletPort), timeouts: { shutdownGracePeriod: gracePeriod } });
  gateway = await serveGateway(files.configurationFile);
  return gateway;
}

async function serveScripted(
  script: KubeletScript = {},
  gracePeriod?: string,
): Promise<[ServedGateway, ScriptedKubelet]> {
  kubelet = new ScriptedKubelet(script);
  return [await serve(await kubelet.listen(), gracePeriod), kubelet];
}

async function sessionCount(): Promise<number> {
  return ((await (await fetch(`${gateway?.adminUrl}/debug/sessions`)).json()) as unknown[]).length;
}

async function openExec(): Promise<V5Client> {
  const client = new V5Client(gateway?.authority ?? "", "stdin=true&stdout=true", "exec", AUTHORIZED);
  await client.opened;
  await expect.poll(sessionCount).toBe(1);
  return client;
}

describe("sluice serve, SIGTERM", () => {
  it("with nothing to do it ends at once, with 0", async () => {
    const [{ child, exited, log }] = await serveScripted({}, "20s");
    child.kill("SIGTERM");
    expect(await exited).toEqual([0, null]);
    expect(log()).toContain("the gateway has stopped");
  });

  it("sessions that do not finish are told, and it ends with 0 though neither peer closes", async () => {
    const [{ authority, child, exited }] = await serveScripted();
    const client = await openExec();
    const tunnel = await TunnelClient.open(authority, { headers: AUTHORIZED });
    const spdy = await startSpdyExec(authority, AUTHORIZED);
    await expect.poll(spdy.isReplied).toBe(true);
    await expect.poll(sessionCount).toBe(3);
    child.kill("SIGTERM");
    const { status, closeCode } = await client.done;
    expect(JSON.parse(status)).toMatchObject({ status: "Failure", reason: "InternalError" });
    expect([closeCode, (await tunnel.closed).code]).toEqual([1000, 1001]);
    await spdy.ended;
    expect(spdy.received.error).toContain("the gateway is shutting down");
    // The scripted kubelet never closes by itself.
    expect(await exited).toEqual([0, null]);
  });

  it("a second SIGTERM ends it at once", async () => {
    const [{ child, exited, adminUrl }] = await serveScripted({}, "600s");
    const client = await openExec();
    child.kill("SIGTERM");
    await expect.poll(async () => (await fetch(`${adminUrl}/readyz`)).ok).toBe(false);
    child.kill("SIGTERM");
    expect(await exited).toEqual([null, "SIGTERM"]);
    expect((await client.done).closeCode).toBe(1006);
  });
});

describe("kill -9 in mid-session", () => {
  it("of the node: every client hears of a failure, none of a success", async () => {
    const node = run(NODE_PROGRAM);
    const { authority } = await serve(Number(await firstLineOf(node)));
    const client = await openExec();
    const spdy = await startSpdyExec(authority, AUTHORIZED);
    const tunnel = await TunnelClient.open(authority, { headers: AUTHORIZED, speaksSpdy: true });
    const forwarded = tunnel.openStream("data", 0);
    await expect.poll(spdy.isReplied).toBe(true);
    await expect.poll(sessionCount).toBe(3);
    node.kill("SIGKILL");
    const { status, closeCode } = await client.done;
    expect(JSON.parse(status)).toMatchObject({ status: "Failure", reason: "InternalError", code: 500 });
    expect(closeCode).toBe(1000);
    await spdy.ended;
    expect(JSON.parse(spdy.received.error)).toMatchObject({ status: "Failure", reason: "InternalError" });
    // What the node had not finished is reset: no stream in the tunnel looks whole.
    expect(await forwarded.ended).toEqual({ type: "reset", status: RST.CANCEL });
    await tunnel.closed;
    await expect.poll(sessionCount).toBe(0);
  });

  it("of the client: the node gets the end of stdin and of the connection", async () => {
    const fins: string[] = [];
    const [{ authority }, node] = await serveScripted({
      onData: (name, _part, fin) => {
        if (fin) fins.push(name);
      },
    });
    const path = "/api/v1/namespaces/default/pods/web/exec?stdin=true&stdout=true";
    const client = run(CLIENT_PROGRAM, `ws://${authority}${path}`, TESTER_TOKEN);
    expect(await firstLineOf(client)).toBe("running");
    await expect.poll(() => node.sessions[0]?.streams.size).toBe(3);
    client.kill("SIGKILL");
    await expect.poll(() => fins).toEqual(["stdin"]);
    await expect.poll(() => node.sessions[0]?.socket.readableEnded).toBe(true);
    await expect.poll(sessionCount).toBe(0);
  });

  it("of the gateway: the client sees an abnormal end, the node the end of its connection", async () => {
    const [{ child }, node] = await serveScripted();
    const client = await openExec();
    await expect.poll(() => node.sessions[0]?.streams.size).toBe(3);
    child.kill("SIGKILL");
    const { status, closeCode } = await client.done;
    expect([status, closeCode]).toEqual(["", 1006]);
    await expect.poll(() => node.openSockets === 0 || node.sessions[0]?.socket.readableEnded).toBe(true);
  });
});
