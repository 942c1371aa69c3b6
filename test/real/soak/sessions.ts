import { connect } from "node:net";
import { WebSocket } from "ws";
import { startSpdyCommand } from "../../support/spdy-command-client.ts";
import { TunnelClient } from "../../support/tunnel-client.ts";
import { V5Client } from "../../support/v5-client.ts";
import { type Chance, seededBytes } from "./seeded.ts";
import type { PodName, SoakWorld } from "./world.ts";

/** One session of a kind that ends in one way. It throws when it saw a foreign byte or an end that is not true. */
export type Scenario = (world: SoakWorld, chance: Chance) => Promise<void>;

const ECHO = "stdin=true&stdout=true&command=cat";
const ECHO_PORT = 7;
const WHOLE: readonly PodName[] = ["web", "web-ws"];
const CUT: readonly PodName[] = ["web-cut", "web-ws-cut"];

/** By kind, which is also the user's name. The endings that the gateway may report for it stand in soak.test.ts. */
export const sessionScenarios = {
  "v5-whole": async (world, chance) => {
    const { client, sent } = await echoed(world, "v5-whole", chance.oneOf(WHOLE), chance);
    client.closeStdin();
    const { stdout, status } = await client.done;
    sameBytes(stdout, sent);
    if (!status.includes('"Success"')) throw new Error(`ended with ${status}`);
  },
  "v5-close": async (world, chance) => {
    const { client } = await echoed(world, "v5-close", chance.oneOf(WHOLE), chance);
    client.socket.close(1000);
    await client.done;
  },
  "v5-kill": async (world, chance) => {
    const { client } = await echoed(world, "v5-kill", chance.oneOf(WHOLE), chance);
    client.socket.terminate();
    await client.done;
  },
  "v5-node-lost": async (world, chance) => {
    const { client } = await echoed(world, "v5-node-lost", chance.oneOf(CUT), chance);
    world.cutNodes();
    const { status } = await client.done;
    if (status.includes('"Success"')) throw new Error("a lost node was reported as success");
  },
  "v5-garbage": async (world, chance) => {
    const { client } = await echoed(world, "v5-garbage", "web", chance);
    // Past `ws`, into the middle of its stream: no frame begins like this.
    (client.socket as unknown as { _socket: { write(bytes: Uint8Array): void } })._socket.write(
      Buffer.from([0xff, 0xff, ...seededBytes(chance.below(1_000_000), 60)]),
    );
    client.socket.terminate();
    await client.done;
  },
  "spdy-whole": async (world, chance) => {
    const { command, sent } = await spdyEchoed(world, "spdy-whole", chance.oneOf(WHOLE), chance);
    command.streams.stdin?.finish();
    await command.ended;
    sameBytes(Buffer.concat(command.received.stdout ?? []), sent);
    if (!command.text("error").includes('"Success"')) throw new Error(`ended with ${command.text("error")}`);
  },
  "spdy-kill": async (world, chance) => {
    const { command } = await spdyEchoed(world, "spdy-kill", chance.oneOf(WHOLE), chance);
    command.socket.resetAndDestroy();
    await command.ended;
  },
  "spdy-node-lost": async (world, chance) => {
    const { command } = await spdyEchoed(world, "spdy-node-lost", chance.oneOf(CUT), chance);
    world.cutNodes();
    await command.ended;
    if (command.text("error").includes('"Success"')) throw new Error("a lost node was reported as success");
  },
  "forward-whole": async (world, chance) => {
    const tunnel = await forwarded(world, "forward-whole", chance.oneOf(WHOLE), chance);
    tunnel.socket.close(1000);
    await tunnel.closed;
  },
  "forward-kill": async (world, chance) => {
    const tunnel = await forwarded(world, "forward-kill", chance.oneOf(WHOLE), chance);
    tunnel.socket.terminate();
    await tunnel.closed;
  },
  refused: async (world, chance) => {
    const socket = connect(Number(world.authority.split(":")[1]), "127.0.0.1");
    socket.on("error", () => {});
    socket.end(
      chance.oneOf([
        "GET /api/v1/namespaces/default/pods/web/exec HTTP/1.1\r\nHost: x\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "\x16\x03\x01\x00\x00",
        `GET /${"a".repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
      ]),
    );
    socket.resume();
    // With or without an error: a refusal may leave bytes unread.
    await new Promise((resolve) => socket.once("close", resolve));
  },
} satisfies Record<string, Scenario>;

async function echoed(world: SoakWorld, user: string, pod: PodName, chance: Chance) {
  const url = `ws://${world.authority}/api/v1/namespaces/default/pods/${pod}/exec?${ECHO}`;
  const headers = { Authorization: `Bearer ${world.tokenOf(user)}` };
  const client = new V5Client(
    new WebSocket(url, "v5.channel.k8s.io", { perMessageDeflate: false, headers, handshakeTimeout: 30_000 }),
  );
  client.socket.on("error", () => {});
  await client.opened;
  const sent = seededBytes(chance.below(1_000_000), chance.between(1, 200_000));
  for (let at = 0; at < sent.length; at += 32_768) client.send(0, sent.subarray(at, at + 32_768));
  await arrived(() => payloadOf(client.messages), sent, client.done);
  return { client, sent };
}

async function spdyEchoed(world: SoakWorld, user: string, pod: PodName, chance: Chance) {
  const headers = { Authorization: `Bearer ${world.tokenOf(user)}` };
  const command = await startSpdyCommand(world.authority, {
    pod,
    headers,
    query: ECHO,
    streams: ["error", "stdin", "stdout"],
  });
  const sent = seededBytes(chance.below(1_000_000), chance.between(1, 200_000));
  command.streams.stdin?.write(Buffer.from(sent));
  await arrived(() => Buffer.concat(command.received.stdout ?? []), sent, command.ended);
  return { command, sent };
}

async function forwarded(world: SoakWorld, user: string, pod: PodName, chance: Chance) {
  const headers = { Authorization: `Bearer ${world.tokenOf(user)}` };
  const tunnel = await TunnelClient.open(world.authority, { pod, headers, speaksSpdy: true });
  tunnel.openStream("error", 1, ECHO_PORT).stream.finish();
  const data = tunnel.openStream("data", 1, ECHO_PORT);
  const sent = seededBytes(chance.below(1_000_000), chance.between(1, 100_000));
  data.stream.write(Buffer.from(sent));
  await arrived(() => data.text(), sent, tunnel.closed);
  return tunnel;
}

function payloadOf(messages: readonly Buffer[]): Buffer {
  return Buffer.concat(messages.filter((message) => message[0] === 1).map((message) => message.subarray(1)));
}

/** Until all of it has come back; what came is compared even where the session ends before. */
async function arrived(read: () => Buffer, sent: Buffer, ended: Promise<unknown>): Promise<void> {
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  for (;;) {
    const received = read();
    sameBytes(received, sent.subarray(0, received.length));
    if (received.length === sent.length) return;
    if (isOver) throw new Interrupted(`ended after ${received.length} of ${sent.length} bytes`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** The session ended early. Whether that is right depends on what else was going on. */
export class Interrupted extends Error {}

/** A byte of somebody else, or one too many: never right. */
export class ForeignBytes extends Error {}

export function sameBytes(received: Buffer, expected: Buffer): void {
  if (received.equals(expected)) return;
  const at = received.findIndex((byte, index) => byte !== expected[index]);
  const seen = received.subarray(Math.max(0, at), at + 40).toString("latin1");
  throw new ForeignBytes(
    `${received.length} bytes where ${expected.length} were due; the first other one at ${at}: ${JSON.stringify(seen)}`,
  );
}
