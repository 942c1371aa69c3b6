import { describe, expect, it } from "vitest";
import { SpdySession } from "../../../../protocols/spdy/index.ts";
import { dataFrame, ScriptedSpdyPeer, StreamLog, synStream } from "../../../support/scripted-spdy-peer.ts";

const text = new TextEncoder();
const data = (streamId: number, said: string) =>
  ({ type: "DATA", streamId, text: said, fin: false }) as const;

describe("the data path of a session", () => {
  it("sends header and payload apart: the payload is the caller's memory, the header stays as it was", () => {
    const sent: Uint8Array[] = [];
    const session = new SpdySession("client", { send: (bytes) => sent.push(bytes), onStream: () => 3 });
    const stream = session.openStream([], new StreamLog());
    sent.length = 0;
    const payload = text.encode("abc");
    for (let index = 0; index < 1000; index++) stream.write(payload);
    stream.write(new Uint8Array(0));
    expect(sent).toHaveLength(2000);
    for (let index = 0; index < 2000; index += 2) {
      expect(Buffer.from(sent[index] ?? []).toString("hex")).toBe("0000000100000003");
      expect(sent[index + 1]).toBe(payload);
    }
  });

  it("splits what no frame can hold", () => {
    const sent: number[] = [];
    const session = new SpdySession("client", {
      send: (bytes) => sent.push(bytes.length),
      onStream: () => 3,
    });
    const stream = session.openStream([], new StreamLog());
    sent.length = 0;
    stream.write(new Uint8Array(2 ** 24));
    expect(sent).toEqual([8, 2 ** 24 - 1, 8, 1]);
  });

  it("has no flow control: 10 MiB go each way without a WINDOW_UPDATE, and those received are ignored", () => {
    const peer = new ScriptedSpdyPeer("server");
    peer.send(synStream(1));
    peer.take();
    const wire = dataFrame(1, "x".repeat(32 * 1024));
    for (let sentBytes = 0; sentBytes < 10 * 1024 * 1024; sentBytes += 32 * 1024) {
      peer.session.receive(wire);
      peer.streams[0]?.write(wire);
    }
    expect(peer.logs[0]?.events).toHaveLength(320);
    expect(peer.take().every((frame) => frame.type === "DATA")).toBe(true);
    peer.send(
      { type: "WINDOW_UPDATE", streamId: 0, deltaBytes: 0 },
      { type: "WINDOW_UPDATE", streamId: 99, deltaBytes: 1 },
      { type: "SETTINGS", entries: [{ flags: 0, id: 7, value: 0 }] },
    );
    peer.streams[0]?.write(text.encode("x"));
    expect(peer.take()).toEqual([data(1, "x")]);
  });

  it("keeps interleaved streams apart", () => {
    const peer = new ScriptedSpdyPeer("server");
    peer.send(synStream(1), synStream(3));
    for (const said of ["a", "b", "c"]) peer.send(dataFrame(1, `1${said}`), dataFrame(3, `3${said}`));
    peer.send(dataFrame(1, "", true), dataFrame(3, "", true));
    expect(peer.logs.map((log) => log.events.join())).toEqual(["1a,1b,1c, FIN", "3a,3b,3c, FIN"]);
  });
});
