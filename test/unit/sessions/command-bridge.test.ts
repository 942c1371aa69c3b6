import { Duplex } from "node:stream";
import { describe, expect, it } from "vitest";
import { defaultSpdyLimits, SpdySession } from "../../../protocols/spdy/index.ts";
import { defaultWebSocketLimits } from "../../../protocols/websocket/index.ts";
import { defaultTimeouts } from "../../../src/config/timeouts.ts";
import { CommandBridge } from "../../../src/sessions/carriers/bridge/command-bridge.ts";
import { SpdyCommandClient } from "../../../src/sessions/carriers/bridge/spdy-command-client.ts";
import type { SessionContext, SessionReport } from "../../../src/sessions/carriers/session.ts";
import { eventually } from "../../support/eventually.ts";
import { ManualClock } from "../../support/manual-clock.ts";

function recordingDuplex(): Duplex & { readonly written: Buffer[] } {
  const written: Buffer[] = [];
  const duplex = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      written.push(Buffer.from(chunk));
      done();
    },
  });
  return Object.assign(duplex, { written });
}

describe("a command bridge", () => {
  it("an upstream that breaks before the client has opened its streams is told on them", async () => {
    const [downstream, upstream] = [recordingDuplex(), recordingDuplex()];
    const reports: SessionReport[] = [];
    const context: SessionContext = {
      clock: new ManualClock(),
      lingerTimes: defaultTimeouts,
      timeouts: defaultTimeouts,
      onOver: () => {},
      onReport: (report) => void reports.push(report),
    };
    const requested = { stdin: true, stdout: true, stderr: false, tty: false };
    const head = new Uint8Array(0);
    new CommandBridge(
      { socket: downstream, head },
      { socket: upstream, head },
      {
        webSocketLimits: defaultWebSocketLimits,
        hasTerminal: false,
        clientOf: (handler) =>
          new SpdyCommandClient(
            downstream,
            handler,
            { version: "v4.channel.k8s.io", requested, spdyLimits: defaultSpdyLimits, maxQueuedBytes: 1_024 },
            context,
          ),
      },
      context,
    );
    upstream.destroy(new Error("gone"));
    await new Promise((resolve) => upstream.once("close", resolve));
    expect(reports).toEqual([]);
    expect(downstream.written).toEqual([]);

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
      for (const bytes of downstream.written.splice(0)) client.receive(bytes);
      return status !== "";
    });
    expect(JSON.parse(status).message).toBe("Internal error occurred: the node's connection was lost: gone");
    expect(reports.map(({ cause }) => cause)).toEqual(["upstream-lost"]);
  });
});
