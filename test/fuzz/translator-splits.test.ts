import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { defaultSpdyLimits, FrameDecoder } from "../../protocols/spdy/index.ts";
import { defaultWebSocketLimits, WebSocketFrameDecoder } from "../../protocols/websocket/index.ts";
import { Translator } from "../../src/sessions/carriers/translator.ts";
import type { SessionReport } from "../../src/sessions/session.ts";
import { CarriedSession, type MemorySocket } from "../support/carried-session.ts";
import { kubeletExec, NODE_STATUS, webSocketExec } from "./conversations.ts";

interface Outcome {
  /** What the client was sent: bytes per channel, control frames in order. */
  readonly toClient: Record<string, string>;
  readonly clientControls: string[];
  /** What the node was sent: bytes per stream, control frames in order. */
  readonly toNode: Record<string, string>;
  readonly nodeControls: string[];
  readonly report: SessionReport | undefined;
}

/** Runs a translated exec over memory: all of the client's parts, then all of the node's, then both ends. */
async function translate(fromClient: readonly Buffer[], fromNode: readonly Buffer[]): Promise<Outcome> {
  const carried = new CarriedSession();
  const { client, node, reports } = carried;
  const nothing = Buffer.alloc(0);
  carried.carry(
    (life) =>
      new Translator(
        { socket: client, head: nothing },
        { socket: node, head: nothing },
        {
          requested: { stdin: true, stdout: true, stderr: false, tty: false },
          upstreamVersion: "v4.channel.k8s.io",
          webSocketLimits: defaultWebSocketLimits,
          spdyLimits: defaultSpdyLimits,
          maxQueuedBytes: 256 * 1024,
        },
        life,
      ),
  );
  await turn();
  // Copies: payload is unmasked where it lies.
  for (const part of fromClient) client.push(Buffer.from(part));
  await read(client);
  for (const part of fromNode) node.push(Buffer.from(part));
  await read(node);
  client.push(null);
  node.push(null);
  await turn();
  return { ...decodeForClient(client.sent), ...decodeForNode(node.sent), report: reports[0] };
}

/** Many small parts at once are not read in one turn (src/net/feed.ts). */
async function read(socket: MemorySocket): Promise<void> {
  do await turn();
  while (socket.readableLength > 0);
}

function decodeForClient(sent: readonly Buffer[]): Pick<Outcome, "toClient" | "clientControls"> {
  const toClient: Record<string, string> = {};
  const clientControls: string[] = [];
  let channel = "";
  const decoder = new WebSocketFrameDecoder(
    "client",
    {
      onMessage: (part, isFirst) => {
        if (isFirst) channel = String(part[0]);
        const payload = isFirst ? part.subarray(1) : part;
        toClient[channel] = (toClient[channel] ?? "") + Buffer.from(payload).toString("latin1");
      },
      onPing: (payload) => clientControls.push(`PING ${Buffer.from(payload)}`),
      onPong: (payload) => clientControls.push(`PONG ${Buffer.from(payload)}`),
      onClose: (code) => clientControls.push(`Close ${code}`),
    },
    defaultWebSocketLimits,
  );
  decoder.push(Buffer.concat(sent));
  return { toClient, clientControls };
}

function decodeForNode(sent: readonly Buffer[]): Pick<Outcome, "toNode" | "nodeControls"> {
  const toNode: Record<string, string> = {};
  const nodeControls: string[] = [];
  const decoder = new FrameDecoder(
    {
      onData: (streamId, part, fin) => {
        const end = fin ? "<FIN>" : "";
        toNode[streamId] = (toNode[streamId] ?? "") + Buffer.from(part).toString("latin1") + end;
      },
      onControl: (frame) =>
        nodeControls.push(
          frame.type === "SYN_STREAM" ? `${frame.streamId} ${frame.headers.get("streamtype")}` : frame.type,
        ),
    },
    defaultSpdyLimits,
  );
  decoder.push(Buffer.concat(sent));
  // Ours is left out where the node's comes in the same read as the end of its last stream (spdy-connection.test.ts).
  return { toNode, nodeControls: nodeControls.filter((type) => type !== "GOAWAY") };
}

function split(bytes: Buffer, at: number): Buffer[] {
  return [bytes.subarray(0, at), bytes.subarray(at)].filter(({ length }) => length > 0);
}

function bytewise(bytes: Buffer): Buffer[] {
  return Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
}

describe("the translator, wherever its input is cut", () => {
  const client = webSocketExec().body;
  const node = kubeletExec().body;
  const whole = translate([client], [node]);

  it("translates the whole conversation", async () => {
    expect(await whole).toEqual({
      toClient: { 1: `first output, ${"more ".repeat(60)}`, 3: NODE_STATUS },
      clientControls: ["PONG keepalive", "Close 1000"],
      toNode: { 3: `hello ${"world ".repeat(40)}<FIN>` },
      nodeControls: ["1 error", "3 stdin", "5 stdout", "PING"],
      report: {
        endedBy: "node",
        cause: "completed",
        code: 200,
        message: "the command ended",
        downstreamBytes: 314,
        upstreamBytes: 246,
      },
    });
  });

  it(`says the same for each of ${client.length} cuts of what the client sends`, async () => {
    const expected = await whole;
    for (let at = 1; at < client.length; at++) {
      expect(await translate(split(client, at), [node]), `cut at ${at}`).toEqual(expected);
    }
  });

  it(`says the same for each of ${node.length} cuts of what the node sends`, async () => {
    const expected = await whole;
    for (let at = 1; at < node.length; at++) {
      expect(await translate([client], split(node, at)), `cut at ${at}`).toEqual(expected);
    }
  });

  it("says the same when everything comes byte by byte", async () => {
    expect(await translate(bytewise(client), bytewise(node))).toEqual(await whole);
  });
});
