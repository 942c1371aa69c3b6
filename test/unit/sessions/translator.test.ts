import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { defaultSpdyLimits, SpdySession, type SpdyStream } from "../../../protocols/spdy/index.ts";
import {
  defaultWebSocketLimits,
  encodeClose,
  WebSocketFrameDecoder,
} from "../../../protocols/websocket/index.ts";
import { Translator } from "../../../src/sessions/carriers/translator.ts";
import { CarriedSession } from "../../support/carried-session.ts";

// The bound under test.
const INPUT_GRACE_MS = 10_000;

const NOTHING = new Uint8Array(0);
const SUCCESS = '{"metadata":{},"status":"Success"}';
const STDIN = 0;
const STDOUT = 1;
const ERROR = 3;

/** One masked frame of at most 125 bytes; the mask is zero, so that it changes nothing. */
function message(channel: number, text: string): Buffer {
  const payload = Buffer.from(text);
  const head = Buffer.from([0x82, 0x80 | (payload.byteLength + 1), 0, 0, 0, 0, channel]);
  return Buffer.concat([head, payload]);
}

/** A translated exec over memory, with a node that speaks SPDY. */
class TranslatedExec extends CarriedSession {
  readonly streams = new Map<string, SpdyStream>();
  readonly session: Translator;
  input = "";
  hasInputEnded = false;
  readonly #spdy: SpdySession;

  constructor() {
    super({ idleMs: 600_000, streamCreationMs: 30_000 });
    for (const socket of [this.client, this.node]) socket.on("error", () => {});
    this.#spdy = new SpdySession("server", {
      send: (bytes) => void this.node.push(Buffer.from(bytes)),
      onStream: (stream) => {
        this.streams.set(stream.headers.get("streamtype") ?? "", stream);
        return {
          onData: (part, fin) => {
            this.input += Buffer.from(part).toString();
            if (fin) this.hasInputEnded = true;
          },
          onEnd: () => {},
        };
      },
    });
    this.session = this.carry(
      (life) =>
        new Translator(
          { socket: this.client, head: NOTHING },
          { socket: this.node, head: NOTHING },
          {
            requested: { stdin: true, stdout: true, stderr: false, tty: false },
            upstreamVersion: "v4.channel.k8s.io",
            webSocketLimits: defaultWebSocketLimits,
            spdyLimits: defaultSpdyLimits,
            maxQueuedBytes: 1_024,
          },
          life,
        ),
    );
  }

  /** What the translator sent reaches the node, and what that answers reaches the translator. */
  async settle(): Promise<void> {
    await turn();
    for (const bytes of this.node.sent.splice(0)) this.#spdy.receive(bytes);
    await turn();
  }

  /** What the client was sent: text for each channel, and Close codes. */
  received(): { channels: Record<number, string>; closed: number[] } {
    const received = { channels: {} as Record<number, string>, closed: [] as number[] };
    let channel = 0;
    const decoder = new WebSocketFrameDecoder("client", {
      onMessage: (part, isFirst) => {
        if (isFirst) channel = part[0] ?? 0;
        const text = Buffer.from(isFirst ? part.subarray(1) : part).toString();
        received.channels[channel] = (received.channels[channel] ?? "") + text;
      },
      onPing: () => {},
      onPong: () => {},
      onClose: (code) => void received.closed.push(code),
    });
    decoder.push(Uint8Array.from(this.client.sentBytes));
    return received;
  }
}

describe("a translator", () => {
  it("opens a stream for each channel and carries input, output and the status", async () => {
    const exec = new TranslatedExec();
    await exec.settle();
    expect([...exec.streams.keys()].toSorted()).toEqual(["error", "stdin", "stdout"]);
    exec.client.push(message(STDIN, "ls\n"));
    await exec.settle();
    expect(exec.input).toBe("ls\n");
    exec.streams.get("stdout")?.write(Buffer.from("bin etc\n"));
    exec.streams.get("stdout")?.finish();
    exec.streams.get("error")?.write(Buffer.from(SUCCESS));
    exec.streams.get("error")?.finish();
    await exec.settle();
    expect(exec.received()).toEqual({
      channels: { [STDOUT]: "bin etc\n", [ERROR]: SUCCESS },
      closed: [1000],
    });
    expect(exec.life).toMatchObject({ upstreamBytes: 3, downstreamBytes: 8 });
  });

  it("says that the node ended without a status, never success", async () => {
    const exec = new TranslatedExec();
    await exec.settle();
    exec.streams.get("stdout")?.write(Buffer.from("half"));
    exec.node.push(null);
    await exec.settle();
    const { channels, closed } = exec.received();
    expect(channels[STDOUT]).toBe("half");
    expect(JSON.parse(channels[ERROR] ?? "")).toMatchObject({ status: "Failure", code: 500 });
    expect(closed).toEqual([1000]);
    expect(exec.reports).toMatchObject([{ cause: "upstream-lost", endedBy: "node" }]);
  });

  it.each([
    ["its limit", (exec: TranslatedExec) => exec.clock.advance(600_000), "idle"],
    ["a shutdown", (exec: TranslatedExec) => exec.life.cut("shutdown", "bye"), "shutdown"],
  ])("tells the client of a failure at %s", async (_name, act, cause) => {
    const exec = new TranslatedExec();
    await exec.settle();
    act(exec);
    expect(JSON.parse(exec.received().channels[ERROR] ?? "")).toMatchObject({ status: "Failure" });
    expect(exec.reports.map((report) => report.cause)).toEqual([cause]);
  });

  it("gives up a node that accepts no streams", async () => {
    const exec = new TranslatedExec();
    await turn();
    exec.clock.advance(30_000);
    expect(exec.reports).toMatchObject([{ cause: "stream-creation-timeout", endedBy: "node" }]);
  });

  it("delivers what was accepted of a client that leaves", async () => {
    const exec = new TranslatedExec();
    await exec.settle();
    exec.client.push(message(STDIN, "last"));
    exec.client.push(null);
    await exec.settle();
    expect(exec.input).toBe("last");
    expect(exec.reports).toMatchObject([{ cause: "client-gone", upstreamBytes: 4 }]);
  });

  it("ends the input of a client that closes properly, and gives the command time to take it", async () => {
    const exec = new TranslatedExec();
    await exec.settle();
    exec.client.push(Buffer.concat([message(STDIN, "upload"), encodeClose(1000, "", 0)]));
    await exec.settle();
    expect(exec.input).toBe("upload");
    expect([exec.hasInputEnded, exec.node.writableEnded]).toEqual([true, false]);
    exec.clock.advance(INPUT_GRACE_MS - 1);
    expect(exec.node.writableEnded).toBe(false);
    exec.clock.advance(1);
    expect(exec.node.writableEnded).toBe(true);
    expect(exec.reports).toMatchObject([{ cause: "client-gone", upstreamBytes: 6 }]);
  });
});
