import { writeFileSync } from "node:fs";
import path from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { AccessGateway, EXEC_HEAD, EXEC_PATH } from "../../support/access-gateway.ts";
import { eventually } from "../../support/eventually.ts";
import { FLAG, FRAME, type FrameClient, openFrameClient } from "../../support/frame-peer.ts";
import { headerBlockOf } from "../../support/http2-frames.ts";
import { watchResets } from "../../support/reset-spy.ts";
import { endExec, type KubeletSession, SUCCESS } from "../../support/scripted-kubelet.ts";
import { descriptors, seededChoices } from "./random-ends.ts";

/** SLUICE_ENDS=3000 takes 20 seconds. */
const ENDS = Number(process.env.SLUICE_ENDS ?? 160);
const AT_ONCE = 8;

const { random, pick } = seededChoices(20_261_127);

const EXEC = { ...EXEC_HEAD, ":path": `${EXEC_PATH}&stdin=true` };
const HEADS = [
  EXEC,
  EXEC,
  EXEC,
  { ...EXEC, "sec-websocket-protocol": "v4.channel.k8s.io" },
  { ...EXEC, authorization: "Bearer nobody" },
  { ...EXEC, ":path": EXEC_PATH.replace("/web/", "/none/") },
  { ...EXEC, ":protocol": "connect-udp" },
  { ":method": "CONNECT", ":authority": "a:1" },
  { ...EXEC, "content-length": "3" },
];

/** What the node does with an exec's stdout. */
const OUTPUTS: readonly ((session: KubeletSession) => void)[] = [
  () => {},
  (session) => endExec(session, SUCCESS),
  ({ streams }) => void streams.get("stdout")?.write(Buffer.alloc(200_000, 65)),
  ({ socket }) => void socket.destroy(),
  // Half a SPDY frame.
  ({ socket }) => void socket.write(Buffer.from([0, 0, 0, 1, 0, 0, 1, 0, 65])),
];
const REFUSALS = [undefined, undefined, undefined, "HTTP/1.1 403 Forbidden\r\nContent-Length: 3\r\n\r\nno\n"];

/** Bytes of a client's WebSocket: half a frame, a header's half, input, Close, and what is none. */
const BYTES = [
  [0x82, 0x85, 0, 0, 0, 0, 0, 65],
  [0x82],
  [0x82, 0x83, 0, 0, 0, 0, 0, 104, 105],
  [0x88, 0x82, 0, 0, 0, 0, 3, 232],
  [0xc2, 0x80, 0, 0, 0, 0],
];

type End = (client: FrameClient, streams: readonly number[]) => void;
const ENDINGS: readonly End[] = [
  // It stays, and says nothing more.
  () => {},
  ({ raw }) => void raw.end(),
  ({ raw }) => void raw.resetAndDestroy(),
  (client, streams) => {
    for (const id of streams) client.reset(id, pick([0, 2, 5, 8]));
  },
  (client, streams) => {
    for (const id of streams) client.send(FRAME.data, FLAG.endStream, id);
  },
  (client) => client.goAway(0, 1),
  (client) => {
    client.goAway(0, 0);
    client.send(FRAME.headers, FLAG.endHeaders, 9, headerBlockOf(EXEC));
  },
  (client) => client.send(FRAME.ping, 0, 0, Buffer.alloc(7)),
  // The window opens after all.
  (client) => client.send(FRAME.settings, 0, 0, Buffer.of(0, 4, 0, 1, 0, 0)),
];

const clients: FrameClient[] = [];

/** One connection with a few CONNECTs, from its preface to its end. */
async function oneEnd(port: number, streams: readonly number[]): Promise<void> {
  const client = await openFrameClient(port, true);
  clients.push(client);
  if (random() < 0.5) client.send(FRAME.settings, 0, 0, Buffer.of(0, 4, 0, 0, 0, 0));
  for (const id of streams) {
    const head = headerBlockOf(pick(HEADS) as Record<string, string>);
    client.send(FRAME.headers, FLAG.endHeaders | (random() < 0.1 ? FLAG.endStream : 0), id, head);
    // Before the answer, sometimes.
    if (random() < 0.5) client.send(FRAME.data, 0, id, Buffer.from(pick(BYTES)));
  }
  const frames = Math.floor(random() * 8);
  for (let turn = 0; turn < 200 && client.frames.length < frames; turn += 1)
    await new Promise((resolve) => setImmediate(resolve));
  for (const id of streams) if (random() < 0.3) client.send(FRAME.data, 0, id, Buffer.from(pick(BYTES)));
  pick(ENDINGS)(client, streams);
}

it.runIf(process.platform === "linux")(
  `${ENDS} random ends of extended CONNECTs leave nothing behind`,
  async () => {
    const resets = await watchResets();
    const gateway = await AccessGateway.start(
      (folder) => {
        writeFileSync(path.join(folder, "tokens.csv"), "t,ann,1\n");
        const waits = { idle: "1s", streamIdle: "300ms", lingerIdle: "300ms", lingerMax: "1s" };
        return {
          timeouts: { ...waits, upgradeResponse: "500ms", streamCreation: "1s", shutdownGracePeriod: "30s" },
          authentication: { tokenAuthFile: "tokens.csv" },
          authorization: { mode: ["AlwaysAllow"] },
        };
      },
      {
        refuse: () => pick(REFUSALS),
        onStream: (name, _stream, session) => {
          if (name === "stdout") pick(OUTPUTS)(session);
        },
      },
    );
    onTestFinished(() => gateway.stop());
    const port = Number(gateway.authority.split(":")[1]);
    await oneEnd(port, [1]);
    const open = (): KubeletSession[] =>
      gateway.kubelet.sessions.filter(({ socket }) => !socket.destroyed && !socket.readableEnded);
    /** The node's ends, and the clients' ones. */
    const destroyOwn = (): void => {
      for (const { socket } of gateway.kubelet.sessions) socket.destroy();
      for (const { raw } of clients.splice(0)) raw.destroy();
    };
    const isQuiet = async (): Promise<boolean> => {
      const sessions = (await gateway.readMetrics()).get(
        'sluice_streaming_active_sessions{subresource="exec"}',
      );
      return sessions === 0 && open().length === 0;
    };
    await eventually("a quiet gateway", isQuiet);
    destroyOwn();
    await eventually("the end of the first session", () => gateway.kubelet.openSockets === 0);
    const before = descriptors();
    let ended = 0;
    const worker = async (): Promise<void> => {
      while (ended < ENDS) {
        const streams = [1, 3, 5, 7].slice(0, 1 + Math.floor(random() * 4));
        ended += streams.length;
        await oneEnd(port, streams);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    // Clients that stay do not keep their sessions.
    await eventually(
      () => `the end of all sessions: ${open().length} connections of the node are open`,
      isQuiet,
    );
    destroyOwn();
    await eventually(
      () => `as few descriptors as before: ${descriptors()}, not ${before}`,
      () => descriptors() <= before,
    );
    // A session or request that is left would take the whole grace period.
    const startedMs = performance.now();
    await gateway.stop();
    expect(resets).toEqual([]);
    expect(performance.now() - startedMs).toBeLessThan(10_000);
  },
  300_000,
);
