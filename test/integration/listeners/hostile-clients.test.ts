import { once } from "node:events";
import { readdirSync } from "node:fs";
import { get as getPlain, type IncomingMessage } from "node:http";
import { get } from "node:https";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { FRAME, PREFACE } from "../../support/frame-peer.ts";
import { GatewayFiles, selfSignedPair, webOn } from "../../support/gateway-files.ts";
import { frameOf } from "../../support/http2-frames.ts";
import { ADMIN_TOKEN, RuntimeNode, WEB_SANDBOX } from "../../support/runtime-node.ts";
import { type KubeletScript, ScriptedKubelet } from "../../support/scripted-kubelet.ts";
import { startTestGateway, type TestGateway } from "../../support/test-gateway.ts";

const timeouts = {
  // A list for those that do not read holds up the handshakes of others.
  handshake: "5s",
  requestBody: "300ms",
  keepAlive: "1s",
  streamIdle: "300ms",
  streamCreation: "1s",
  upgradeResponse: "300ms",
  lingerIdle: "300ms",
  lingerMax: "1s",
  idle: "1s",
  shutdownGracePeriod: "0s",
};
/** The admin listener's own bounds are of 10 s. */
const LONG_MS = 30_000;
/** Pods whose list is more than all buffers on the way hold. */
const MANY_PODS = 30_000;

interface Target {
  readonly port: number;
  readonly token: string;
  readonly read: string;
  readonly exec: string;
  readonly isTls: boolean;
}

let node: RuntimeNode;
/** The node whose kubelet listener uses TLS. */
let secureNode: RuntimeNode;
/** The node of the API's gateways. */
let webNode: ScriptedKubelet;
const gateways: TestGateway[] = [];
let targets: Readonly<Record<string, Target>>;
let isLong = false;
const files = new GatewayFiles();
const unhandled: unknown[] = [];
const note = (reason: unknown): number => unhandled.push(reason);

beforeAll(async () => {
  const many = Array.from({ length: MANY_PODS }, (_, index) => {
    const name = `web-${index}`;
    const labels = { ...WEB_SANDBOX.labels, "io.kubernetes.pod.name": name, "io.kubernetes.pod.uid": name };
    return { ...WEB_SANDBOX, id: name, metadata: { ...WEB_SANDBOX.metadata, name, uid: name }, labels };
  });
  // No end, and more than all buffers on the way hold.
  const streaming: KubeletScript = {
    onStream: (name, stream) => void (name === "stdout" && stream.write(Buffer.alloc(32 << 20))),
  };
  webNode = new ScriptedKubelet(streaming);
  const startNode = (listener: object) =>
    RuntimeNode.start({
      script: { ListPodSandbox: () => ({ items: isLong ? [WEB_SANDBOX, ...many] : [WEB_SANDBOX] }) },
      streaming,
      listener,
      more: { timeouts, limits: { maxRuntimeMessageBytes: "64Mi" } },
    });
  node = await startNode({});
  const { cert, key } = await selfSignedPair("node");
  const [certFile, keyFile] = [files.write("tls.crt", cert), files.write("tls.key", key)];
  secureNode = await startNode({ tls: { certFile, keyFile } });
  const port = await webNode.listen();
  for (const scheme of ["http", "https"] as const)
    gateways.push(await startTestGateway({ scheme, ...webOn(port), configuration: { timeouts } }));
  const [kubelet, secureKubelet] = [node, secureNode].map((each) => ({
    port: Number(each.authority.split(":")[1]),
    token: ADMIN_TOKEN,
    read: "/pods",
    exec: "/exec/default/web/main?command=id&output=1",
    isTls: each === secureNode,
  })) as [Target, Target];
  const [api, secureApi] = gateways.map(({ apiServerUrl, token }) => ({
    port: Number(new URL(apiServerUrl).port),
    token,
    read: "/api/v1/namespaces/default/pods",
    exec: "/api/v1/namespaces/default/pods/web/exec?command=id&stdout=true&container=main",
    isTls: apiServerUrl.startsWith("https:"),
  })) as [Target, Target];
  const adminPort = Number(new URL(node.adminUrl).port);
  targets = {
    kubelet,
    admin: { port: adminPort, token: "", read: "/metrics", exec: "/metrics", isTls: false },
    API: api,
    "kubelet's TLS": secureKubelet,
    "API's TLS": secureApi,
  };
  process.on("unhandledRejection", note).on("uncaughtExceptionMonitor", note);
});
afterEach(() => expect(unhandled).toEqual([]));
afterAll(async () => {
  process.off("unhandledRejection", note).off("uncaughtExceptionMonitor", note);
  for (const gateway of gateways) await gateway.stop();
  await webNode.close();
  await secureNode.stop();
  await node.stop();
  files.remove();
});

type Act = (target: Target, open: () => Socket) => void;

const head = (method: string, path: string, { token }: Target, ...more: string[]): string =>
  [`${method} ${path} HTTP/1.1`, "Host: localhost", `Authorization: Bearer ${token}`, ...more, "", ""].join(
    "\r\n",
  );
const read = (target: Target, ...more: string[]): string => head("GET", target.read, target, ...more);
const WEBSOCKET = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  `Sec-WebSocket-Key: ${Buffer.alloc(16).toString("base64")}`,
  "Sec-WebSocket-Protocol: v5.channel.k8s.io",
];
const SPDY = ["Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io"];
const writes =
  (bytes: (target: Target) => string | Buffer): Act =>
  (target, open) =>
    void open().write(bytes(target));
/** Reads what comes. */
const reading =
  (act: Act): Act =>
  (target, open) =>
    act(target, () => open().resume());

function drips(bytes: (target: Target) => string): Act {
  return (target, open) => {
    const socket = open().resume();
    const text = bytes(target);
    let sent = 0;
    const timer = setInterval(() => socket.write(text.charAt(sent++ % text.length)), 20);
    socket.once("close", () => clearInterval(timer));
    onTestFinished(() => clearInterval(timer));
  };
}

function resets(bytes: (target: Target) => string, afterBytes: number): Act {
  return (target, open) => {
    for (let index = 0; index < 50; index++) {
      const socket = open();
      if (afterBytes === 0) socket.write(bytes(target), () => socket.resetAndDestroy());
      else {
        socket.write(bytes(target));
        let got = 0;
        socket.on("data", (part) => {
          got += part.length;
          if (got >= afterBytes) socket.resetAndDestroy();
        });
      }
    }
  };
}

const ACTS: Readonly<Record<string, Act>> = {
  "no byte": writes(() => ""),
  "half a head": writes((target) => read(target).slice(0, -3)),
  "a head byte by byte": drips((target) => read(target).slice(0, -2).replaceAll("\r\n\r\n", "\r\n")),
  junk: writes(() => Buffer.alloc(1_000, 0xfe)),
  "a TLS ClientHello": writes(() => Buffer.from("1603010200010001fc0303", "hex")),
  "half a body": writes((target) => `${head("POST", target.exec, target, "Content-Length: 100")}x`),
  "half a body of a read": writes((target) => `${read(target, "Content-Length: 100")}x`),
  "half a chunk": writes(
    (target) => `${head("POST", target.exec, target, "Transfer-Encoding: chunked")}5\r\nab`,
  ),
  "a chunked body of a read byte by byte": (target, open) => {
    const socket = open().resume();
    socket.write(read(target, "Transfer-Encoding: chunked"));
    const timer = setInterval(() => socket.write("1\r\nx\r\n"), 20);
    socket.once("close", () => clearInterval(timer));
    onTestFinished(() => clearInterval(timer));
  },
  "a body that it waits to be asked for": writes((target) =>
    head("POST", target.exec, target, "Content-Length: 100", "Expect: 100-continue"),
  ),
  "two lengths": writes((target) => read(target, "Content-Length: 1", "Transfer-Encoding: chunked")),
  "a head without end": (target, open) => {
    const socket = open();
    socket.write(read(target).slice(0, -2));
    const flood = (): void => {
      if (!socket.destroyed && socket.write("A: b\r\n".repeat(10_000))) setImmediate(flood);
    };
    socket.on("drain", flood);
    flood();
  },
  "300 answers that it does not read": writes((target) => read(target).repeat(300)),
  "300 refusals that it does not read": writes((target) => read({ ...target, token: "no" }).repeat(300)),
  "300 requests, then a FIN": (target, open) => void open().end(read(target).repeat(300)),
  "300 requests, then half a head": reading(writes((target) => `${read(target).repeat(300)}GET /`)),
  "300 requests, then junk": reading(writes((target) => `${read(target).repeat(300)}\x00\x01\r\n\r\n`)),
  "resets behind heads": resets(read, 0),
  "resets within answers": resets(read, 1),
  "resets behind upgrades": resets((target) => head("GET", target.exec, target, ...WEBSOCKET), 0),
  "resets behind their 101": resets((target) => head("GET", target.exec, target, ...WEBSOCKET), 1),
  "resets behind SPDY's 101": resets((target) => head("POST", target.exec, target, ...SPDY), 1),
  "an exec whose output it does not read": writes((target) => head("GET", target.exec, target, ...WEBSOCKET)),
  "an exec behind 300 reads": writes(
    (target) => read(target).repeat(300) + head("GET", target.exec, target, ...WEBSOCKET),
  ),
  "SPDY without streams": reading(writes((target) => head("POST", target.exec, target, ...SPDY))),
  "an exec and half a frame": reading(
    writes((target) =>
      Buffer.concat([Buffer.from(head("GET", target.exec, target, ...WEBSOCKET)), Buffer.of(0x82)]),
    ),
  ),
  "an upgrade with a body": reading(
    writes((target) => head("GET", target.exec, target, ...WEBSOCKET, "Content-Length: 100")),
  ),
  "a handshake without a key": writes((target) => head("GET", target.exec, target, ...WEBSOCKET.slice(0, 3))),
  "another protocol": writes((target) =>
    head("GET", target.exec, target, "Connection: Upgrade", "Upgrade: x"),
  ),
  "a CONNECT": writes((target) => head("CONNECT", "localhost:1", target)),
  "HTTP/2.0 in a head": writes(() => "GET / HTTP/2.0\r\nHost: localhost\r\n\r\n"),
  "HTTP/2's preface": writes(() => PREFACE),
  "HTTP/2 and half a head": writes(() =>
    Buffer.concat([PREFACE, frameOf(FRAME.settings, 0, 0), frameOf(FRAME.headers, 0, 1, Buffer.of(0x82))]),
  ),
};

/** An honest client's answer. */
async function honest({ port, token, read: path, isTls }: Target): Promise<number | undefined> {
  const headers = { Authorization: `Bearer ${token}`, Connection: "close" };
  const asked = (isTls ? get : getPlain)({
    port,
    host: "127.0.0.1",
    path,
    headers,
    rejectUnauthorized: false,
  });
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  await once(response.resume(), "end");
  return response.statusCode;
}

/** A client's socket, which its act may read, and reset in the middle of a record. */
function dial({ port, isTls }: Target): Socket {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  if (!isTls) return socket;
  const secure = connectTls({ socket, rejectUnauthorized: false });
  secure.resetAndDestroy = () => {
    socket.resetAndDestroy();
    return secure.destroy();
  };
  return secure;
}

const descriptors = (): number => readdirSync("/proc/self/fd").length;

const LISTENERS = ["kubelet", "admin", "API", "kubelet's TLS", "API's TLS"];

/** Clients that do not read need a list longer than all buffers; its making would hold up the others. */
const isUnread = (what: string): boolean => /not read/.test(what);
const [UNREAD, OTHERS] = [true, false].map((is) => Object.keys(ACTS).filter((what) => isUnread(what) === is));

// All at once: one after the other, they wait for minutes.
describe.each(LISTENERS)("the %s listener lets go of clients that send", (name) => {
  it.each([
    { kind: "and read", acts: OTHERS ?? [] },
    { kind: "and do not read", acts: UNREAD ?? [] },
  ])("what is wrong, $kind", { timeout: 2 * LONG_MS }, async ({ acts }) => {
    const target = targets[name] as Target;
    expect(acts.length).toBeGreaterThan(0);
    isLong = acts === UNREAD;
    onTestFinished(() => {
      isLong = false;
    });
    expect(await honest(target)).toBe(200);
    const held = (): number =>
      [node.streaming, secureNode.streaming, webNode].reduce((sum, { openSockets }) => sum + openSockets, 0);
    const before = descriptors() - held();
    const clients: { what: string; socket: Socket }[] = [];
    for (const what of acts)
      ACTS[what]?.(target, () => {
        const socket = dial(target);
        socket.on("error", () => {}).pause();
        clients.push({ what, socket });
        onTestFinished(() => void socket.destroy());
        return socket;
      });
    expect(await honest(target)).toBe(200);
    // The clients and the runtime's streaming server may keep their own ends open.
    const open = () => clients.filter(({ socket }) => !socket.destroyed);
    const ends = () =>
      `${descriptors() - before} descriptors; open: ${[...new Set(open().map(({ what }) => what))].join(", ")}`;
    const own = (): number => open().length + held();
    await eventually(ends, () => descriptors() <= before + own(), { timeoutMs: LONG_MS });
    expect(await honest(target)).toBe(200);
  });
});

it("sessions of the API's clients reached the node", () => {
  expect(webNode.sessions.length).toBeGreaterThan(100);
});
