import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { UpgradedConnection } from "../../../packages/client/src/net/upgraded-connection.ts";
import { encodeBase64 } from "../../../protocols/remotecommand/index.ts";
import {
  defaultSpdyLimits,
  encodeGoAway,
  FrameEncoder,
  writeDataHeader,
} from "../../../protocols/spdy/index.ts";
import {
  defaultWebSocketLimits,
  encodeClose,
  OPCODE,
  writeFrameHeader,
} from "../../../protocols/websocket/index.ts";
import { CommandBridge } from "../../../src/sessions/carriers/bridge/command-bridge.ts";
import { ChannelCommandClient } from "../../../src/sessions/carriers/bridge/command-clients.ts";
import { Relay } from "../../../src/sessions/carriers/relay.ts";
import { Translator } from "../../../src/sessions/carriers/translator.ts";
import { passThroughOf } from "../../../src/sessions/relayed-session.ts";
import type { StreamingRequest } from "../../../src/sessions/streaming-request.ts";
import { CarriedSession } from "../../support/carried-session.ts";

const NOTHING = new Uint8Array(0);
const SUCCESS = '{"metadata":{},"status":"Success"}';
const EXIT_7 =
  '{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}';
const FAILURE = '{"status":"Failure","reason":"InternalError","message":"no shell","code":500}';
const requested = { stdin: false, stdout: true, stderr: false, tty: false };
const webSocketLimits = defaultWebSocketLimits;

const sides = ({ client, node }: CarriedSession): [UpgradedConnection, UpgradedConnection] => [
  { socket: client, head: NOTHING },
  { socket: node, head: NOTHING },
];

function relayed(transport: "spdy" | "websocket", protocol: string): CarriedSession {
  const header = transport === "spdy" ? "X-Stream-Protocol-Version" : "Sec-WebSocket-Protocol";
  const { decoderFor, ...session } = passThroughOf(
    { offer: { transport } as StreamingRequest["offer"], subresource: "exec", ports: [] },
    [[header, protocol]],
    { spdy: defaultSpdyLimits },
  );
  const carried = new CarriedSession({}, [session.ends]);
  carried.carry(
    (life) => new Relay(...sides(carried), life, { ...session, decoder: decoderFor(life.observers) }),
  );
  return carried;
}

function translated(): CarriedSession {
  const carried = new CarriedSession();
  const options = {
    requested,
    upstreamVersion: "v4.channel.k8s.io",
    webSocketLimits,
    spdyLimits: defaultSpdyLimits,
    maxQueuedBytes: 1_024,
  } as const;
  carried.carry((life) => new Translator(...sides(carried), options, life));
  return carried;
}

function bridged(): CarriedSession {
  const carried = new CarriedSession();
  const client = { version: "v4.channel.k8s.io", requested, webSocketLimits } as const;
  carried.carry(
    (life) =>
      new CommandBridge(
        ...sides(carried),
        {
          webSocketLimits,
          hasTerminal: false,
          clientOf: (handler) => new ChannelCommandClient(carried.client, handler, client, life),
        },
        life,
      ),
  );
  return carried;
}

const encoder = new FrameEncoder();
const OPEN = Buffer.concat(
  ["error", "stdout"].map((type, index) =>
    encoder.encode({
      type: "SYN_STREAM",
      streamId: 2 * index + 1,
      associatedStreamId: 0,
      priority: 0,
      fin: false,
      unidirectional: false,
      headers: new Map([["streamtype", type]]),
    }),
  ),
);

/** A SPDY node's bytes: its replies, a DATA frame on the error stream for each text, then its end. */
function spdyNode(texts: readonly string[]): Buffer {
  const node = new FrameEncoder();
  const replies = [1, 3].map((streamId) =>
    node.encode({ type: "SYN_REPLY", streamId, fin: false, headers: new Map() }),
  );
  const frames = texts.flatMap((text) => {
    const header = new Uint8Array(8);
    writeDataHeader(header, 0, 1, text.length, false);
    return [header, Buffer.from(text)];
  });
  const resets = [1, 3].map((streamId) => node.encode({ type: "RST_STREAM", streamId, status: 5 }));
  return Buffer.concat([
    ...replies,
    ...frames,
    ...resets,
    encodeGoAway({ type: "GOAWAY", lastGoodStreamId: 3, status: 0 }),
  ]);
}

/** A WebSocket node's bytes: a message on the error channel for each text, then Close. */
const channelNode = (isBase64: boolean) => (texts: readonly string[]) => {
  const messages = texts.map((text) => {
    const body = isBase64
      ? Buffer.concat([Buffer.from("3"), encodeBase64(Buffer.from(text))])
      : Buffer.from(`\u0003${text}`);
    const header = new Uint8Array(14);
    const bytes = writeFrameHeader(header, 0, isBase64 ? OPCODE.TEXT : OPCODE.BINARY, body.byteLength, true);
    return Buffer.concat([header.subarray(0, bytes), body]);
  });
  return Buffer.concat([...messages, encodeClose(1000, "")]);
};

describe.each([
  ["SPDY v4 passed through", () => relayed("spdy", "v4.channel.k8s.io"), OPEN, spdyNode],
  ["v5 passed through", () => relayed("websocket", "v5.channel.k8s.io"), NOTHING, channelNode(false)],
  ["v4 passed through", () => relayed("websocket", "v4.channel.k8s.io"), NOTHING, channelNode(false)],
  [
    "base64 passed through",
    () => relayed("websocket", "v4.base64.channel.k8s.io"),
    NOTHING,
    channelNode(true),
  ],
  ["v5 translated to SPDY", translated, NOTHING, spdyNode],
  ["v4 bridged to v5", bridged, NOTHING, channelNode(false)],
] as const)("a command of %s", (_name, begin, open, node) => {
  it.each([
    ["success and more in its frame", [`${SUCCESS}{"status":"Failure"} and more`], "completed", 200],
    ["success and white space", [`\n${SUCCESS}\n\n`], "completed", 200],
    ["success, then a failure", [SUCCESS, FAILURE], "completed", 200],
    ["an exit code and more in its frame", [`${EXIT_7}}}`], "completed", 200],
    ["a failure and more in its frame", [`${FAILURE} and more`], "upstream-failed", 500],
    ["a failure, then success", [FAILURE, SUCCESS], "upstream-failed", 500],
    ["text and a Status behind it", [`no ${SUCCESS}`], "upstream-failed", 500],
    ["half a Status", [SUCCESS.slice(0, -1)], "upstream-failed", 500],
  ])("has one end for %s, wherever reads cut it", async (_what, texts, cause, code) => {
    const bytes = node(texts);
    const seen = new Set<string>();
    for (let cut = 0; cut < bytes.byteLength; cut++) {
      const session = begin();
      for (const socket of [session.client, session.node]) socket.on("error", () => {});
      if (open.byteLength > 0) session.client.push(open);
      await turn();
      for (const part of [bytes.subarray(0, cut), bytes.subarray(cut)])
        if (part.byteLength > 0) session.node.push(Buffer.from(part));
      session.node.push(null);
      session.client.push(null);
      for (let turns = 0; turns < 100 && session.reports.length === 0; turns++) await turn();
      const [report] = session.reports;
      seen.add(`${report?.cause} ${report?.code}`);
    }
    expect([...seen]).toEqual([`${cause} ${code}`]);
  });
});
