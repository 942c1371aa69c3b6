import { describe, expect, it } from "vitest";
import { defaultSpdyLimits, SpdySession } from "../../../protocols/spdy/index.ts";
import { defaultWebSocketLimits } from "../../../protocols/websocket/index.ts";
import { CommandBridge } from "../../../src/sessions/carriers/bridge/command-bridge.ts";
import { SpdyCommandClient } from "../../../src/sessions/carriers/bridge/spdy-command-client.ts";
import { CarriedSession } from "../../support/carried-session.ts";
import { eventually } from "../../support/eventually.ts";

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
    const head = new Uint8Array(0);
    carried.carry(
      (life) =>
        new CommandBridge(
          { socket: downstream, head },
          { socket: upstream, head },
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
});
