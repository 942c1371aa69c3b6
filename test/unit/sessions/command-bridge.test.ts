import { describe, expect, it } from "vitest";
import { defaultSpdyLimits, SpdySession } from "../../../protocols/spdy/index.ts";
import { defaultWebSocketLimits, OPCODE } from "../../../protocols/websocket/index.ts";
import { CommandBridge } from "../../../src/sessions/carriers/bridge/command-bridge.ts";
import {
  ChannelCommandClient,
  SpdyCommandClient,
} from "../../../src/sessions/carriers/bridge/command-clients.ts";
import { CarriedSession } from "../../support/carried-session.ts";
import { eventually } from "../../support/eventually.ts";
import { channelPeer, plainPipe, settle, spdyPeer, webSocketPipe } from "../../support/session-peers.ts";

// The bound under test.
const INPUT_GRACE_MS = 10_000;

const NOTHING = new Uint8Array(0);
const SUCCESS = '{"metadata":{},"status":"Success"}';

describe("a command bridge", () => {
  it("an upstream that breaks before the client has opened its streams is told on them", async () => {
    const carried = new CarriedSession();
    const { client: downstream, node: upstream, reports } = carried;
    const requested = { stdin: true, stdout: true, stderr: false, tty: false };
    const options = {
      version: "v4.channel.k8s.io",
      requested,
      spdyLimits: defaultSpdyLimits,
      maxQueuedBytes: 1_024,
    } as const;
    carried.carry(
      (life) =>
        new CommandBridge(
          { socket: downstream, head: NOTHING },
          { socket: upstream, head: NOTHING },
          {
            webSocketLimits: defaultWebSocketLimits,
            hasTerminal: false,
            clientOf: (handler) => new SpdyCommandClient(downstream, handler, options, life),
          },
          life,
        ),
    );
    upstream.destroy(new Error("gone"));
    await new Promise((resolve) => upstream.once("close", resolve));
    expect(reports).toEqual([]);
    expect(downstream.sent).toEqual([]);

    let status = "";
    const client = new SpdySession("client", {
      send: (bytes) => void downstream.push(Buffer.from(bytes)),
      onStream: () => 3,
    });
    for (const streamtype of ["error", "stdin", "stdout"]) {
      client.openStream([["streamtype", streamtype]], {
        onData: (part) => {
          if (streamtype === "error") status += Buffer.from(part).toString();
        },
        onEnd: () => {},
      });
    }
    await eventually("the client is told", () => {
      for (const bytes of downstream.sent.splice(0)) client.receive(bytes);
      return status !== "";
    });
    expect(JSON.parse(status).message).toBe("Internal error occurred: the node's connection was lost: gone");
    expect(reports.map(({ cause }) => cause)).toEqual(["upstream-lost"]);
  });

  it.each([
    ["SPDY v4", "v4.channel.k8s.io"],
    ["WebSocket v4", "v4.channel.k8s.io"],
    ["WebSocket v4 in base64", "v4.base64.channel.k8s.io"],
  ] as const)("carries a command of %s both ways, and its status last", async (name, version) => {
    const carried = new CarriedSession();
    const { client, node } = carried;
    const requested = { stdin: true, stdout: true, stderr: true, tty: false };
    const webSocketLimits = defaultWebSocketLimits;
    const isSpdy = name.startsWith("SPDY");
    const isBase64 = version === "v4.base64.channel.k8s.io";
    carried.carry(
      (life) =>
        new CommandBridge(
          { socket: client, head: NOTHING },
          { socket: node, head: NOTHING },
          {
            webSocketLimits,
            hasTerminal: false,
            clientOf: (handler) =>
              isSpdy
                ? new SpdyCommandClient(
                    client,
                    handler,
                    { version, requested, spdyLimits: defaultSpdyLimits, maxQueuedBytes: 1_024 },
                    life,
                  )
                : new ChannelCommandClient(client, handler, { version, requested, webSocketLimits }, life),
          },
          life,
        ),
    );
    const clientPipe = isSpdy
      ? plainPipe(client)
      : webSocketPipe(client, "client", isBase64 ? OPCODE.TEXT : undefined);
    const clientPeer = isSpdy
      ? spdyPeer(clientPipe, "client", ["error", "stdin", "stdout", "stderr"])
      : channelPeer(clientPipe, { isBase64 });
    const nodePeer = channelPeer(webSocketPipe(node, "server"), { isNode: true });
    await settle(clientPeer, nodePeer);
    clientPeer.send("stdin", "ls");
    clientPeer.finish("stdin");
    nodePeer.send("stdout", "bin");
    nodePeer.send("stderr", "warning");
    nodePeer.send("error", SUCCESS);
    nodePeer.leave();
    await settle(clientPeer, nodePeer);
    expect(nodePeer.received).toEqual({ stdin: "ls", ...(isSpdy && { 255: "\0" }) });
    expect(clientPeer.received).toMatchObject({ stdout: "bin", stderr: "warning", error: SUCCESS });
    expect(isSpdy ? clientPeer.ended : clientPipe.closes).toEqual(
      isSpdy ? ["stdout", "stderr", "error", "stdin"] : [1000],
    );
    expect(carried.life).toMatchObject({ upstreamBytes: 2, downstreamBytes: 10 });
    client.push(null);
    await expect.poll(() => carried.causes).toEqual(["completed"]);
  });

  it("takes a proper Close for the end of input, and gives the command time to take it", async () => {
    const carried = new CarriedSession();
    const { client, node, clock } = carried;
    const requested = { stdin: true, stdout: true, stderr: false, tty: false };
    const webSocketLimits = defaultWebSocketLimits;
    carried.carry(
      (life) =>
        new CommandBridge(
          { socket: client, head: NOTHING },
          { socket: node, head: NOTHING },
          {
            webSocketLimits,
            hasTerminal: false,
            clientOf: (handler) =>
              new ChannelCommandClient(
                client,
                handler,
                { version: "v4.channel.k8s.io", requested, webSocketLimits },
                life,
              ),
          },
          life,
        ),
    );
    const clientPeer = channelPeer(webSocketPipe(client, "client"));
    const nodePipe = webSocketPipe(node, "server");
    const nodePeer = channelPeer(nodePipe, { isNode: true });
    clientPeer.send("stdin", "upload");
    clientPeer.leave();
    await settle(clientPeer, nodePeer);
    expect(nodePeer.received).toEqual({ stdin: "upload", "255": "\0" });
    expect([nodePipe.closes, node.writableEnded]).toEqual([[], false]);
    clock.advance(INPUT_GRACE_MS - 1);
    await settle(nodePeer);
    expect(nodePipe.closes).toEqual([]);
    clock.advance(1);
    await settle(nodePeer);
    expect([nodePipe.closes, carried.causes]).toEqual([[1000], ["client-gone"]]);
  });
});
