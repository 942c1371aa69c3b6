import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { CarriedSession } from "../../support/carried-session.ts";
import { passing } from "../../support/command-carriers.ts";
import { settle } from "../../support/session-peers.ts";

// The bound under test.
const MAX_WAITING_WARNINGS = 8;

const JOINED = "\r\nsluice: ben has joined this session and can type\r\n";
const SUCCESS = '{"metadata":{},"status":"Success"}';

describe.each([
  ["WebSocket v5", "websocket", "v5.channel.k8s.io"],
  ["WebSocket v4", "websocket", "v4.channel.k8s.io"],
  ["WebSocket v1", "websocket", "channel.k8s.io"],
  ["base64", "websocket", "v4.base64.channel.k8s.io"],
  ["SPDY", "spdy", "v4.channel.k8s.io"],
] as const)("a terminal over %s that passes through", (_name, transport, protocol) => {
  async function terminal(isTerminal = true) {
    const session = passing(transport, protocol, isTerminal)(new CarriedSession());
    await settle(session.client, session.node);
    session.node.send("stdout", "$ ");
    await settle(session.client, session.node);
    return session;
  }

  it("shows its owner who joins, between two messages of the node", async () => {
    const { carried, client, node } = await terminal();
    carried.life.joined("ben", true);
    node.send("stdout", "ls");
    await settle(client, node);
    expect(client.received).toMatchObject({ stdout: `$ ${JOINED}ls` });
  });

  it("shows it behind a message that has begun", async () => {
    const { carried, client, node } = await terminal();
    const whole: Buffer[] = [];
    const push = carried.node.push.bind(carried.node);
    carried.node.push = (bytes: Buffer) => whole.push(bytes) > 0;
    node.send("stdout", "output");
    carried.node.push = push;
    const bytes = Buffer.concat(whole);
    push(bytes.subarray(0, bytes.byteLength - 3));
    await turn();
    carried.life.joined("ben", true);
    push(bytes.subarray(bytes.byteLength - 3));
    await settle(client, node);
    // SPDY's frames are cut where the bytes are: its line may come within the node's.
    const shown = client.received.stdout ?? "";
    expect(shown.replace(JOINED, "")).toBe("$ output");
    if (transport === "websocket") expect(shown).toBe(`$ output${JOINED}`);
  });

  it("shows nothing without a terminal, and behind the command's end", async () => {
    const piped = await terminal(false);
    piped.carried.life.joined("ben", true);
    await settle(piped.client, piped.node);
    expect(piped.client.received).toMatchObject({ stdout: "$ " });
    if (protocol === "channel.k8s.io") return;
    const { carried, client, node } = await terminal();
    node.send("error", SUCCESS);
    await settle(client, node);
    carried.life.joined("ben", true);
    await settle(client, node);
    expect(client.received).toMatchObject({ stdout: "$ ", error: SUCCESS });
  });
});

it("a message that does not end holds so many warnings", async () => {
  const { carried, client, node } = passing("websocket", "v5.channel.k8s.io", true)(new CarriedSession());
  carried.node.push(Buffer.of(0x82, 3, 1));
  await turn();
  for (let count = 0; count < 2 * MAX_WAITING_WARNINGS; count += 1) carried.life.joined("ben", true);
  carried.node.push(Buffer.from("ls"));
  await settle(client, node);
  expect(client.received.stdout).toBe(`ls${JOINED.repeat(MAX_WAITING_WARNINGS)}`);
});
