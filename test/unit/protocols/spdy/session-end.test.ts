import { describe, expect, it } from "vitest";
import { GOAWAY, RST } from "../../../../protocols/spdy/index.ts";
import { dataFrame, ScriptedSpdyPeer, StreamLog, synStream } from "../../../support/scripted-spdy-peer.ts";

const text = new TextEncoder();
const goAway = (lastGoodStreamId: number, status: number = GOAWAY.OK) =>
  ({ type: "GOAWAY", lastGoodStreamId, status }) as const;

function withTwoStreams() {
  const peer = new ScriptedSpdyPeer("server");
  peer.send(synStream(1), synStream(3));
  peer.take();
  return { peer, logs: () => peer.logs.map((log) => log.events) };
}

describe("PING", () => {
  it("TestPing: ours are odd for a client, even for a server; the answers come back by id", () => {
    const client = new ScriptedSpdyPeer("client");
    expect([client.session.ping(), client.session.ping()]).toEqual([1, 3]);
    expect(client.take()).toEqual([
      { type: "PING", id: 1 },
      { type: "PING", id: 3 },
    ]);
    client.send({ type: "PING", id: 3 }, { type: "PING", id: 1 });
    expect([client.events, client.take()]).toEqual([["pong 3", "pong 1"], []]);
    expect(new ScriptedSpdyPeer("server").session.ping()).toBe(2);
  });

  it("of the other parity is echoed as it came", () => {
    const server = new ScriptedSpdyPeer("server");
    server.send({ type: "PING", id: 0xffff_ffff }, { type: "PING", id: 1 });
    expect(server.take()).toEqual([
      { type: "PING", id: 0xffff_ffff },
      { type: "PING", id: 1 },
    ]);
    expect(server.events).toEqual([]);
    const client = new ScriptedSpdyPeer("client");
    client.send({ type: "PING", id: 4 });
    expect(client.take()).toEqual([{ type: "PING", id: 4 }]);
  });
});

describe("GOAWAY from the peer", () => {
  it("TestGoAwayRace: data before it is delivered, then every stream ends", () => {
    const { peer, logs } = withTwoStreams();
    peer.send(dataFrame(1, "last words"), goAway(3));
    expect(logs()).toEqual([["last words", "session-ended"], ["session-ended"]]);
    expect(peer.events).toEqual(["goaway 3 0"]);
    expect([peer.session.isOver, peer.session.openStreamCount]).toEqual([true, 0]);
  });

  it("TestCloseNotification: brings the last good stream and the status, before the streams end", () => {
    const peer = new ScriptedSpdyPeer("server", {
      onStream: () => ({ onData() {}, onEnd: () => peer.events.push("ended") }),
    });
    peer.send(synStream(1), goAway(2, GOAWAY.PROTOCOL_ERROR));
    expect(peer.events).toEqual(["goaway 2 1", "ended"]);
  });

  it("TestClientConnectionStopsServingAfterGoAway: nothing after it is heeded, not even nonsense", () => {
    const { peer, logs } = withTwoStreams();
    const before = logs().length;
    peer.send(
      goAway(3),
      synStream(5),
      dataFrame(1, "x"),
      { type: "PING", id: 1 },
      Uint8Array.of(0x80, 3, 0, 5, 0, 0, 0, 0),
    );
    peer.send(goAway(3), Uint8Array.of(1, 2, 3));
    expect([logs().length, peer.take(), peer.events]).toEqual([before, [], ["goaway 3 0"]]);
  });

  it("leaves nothing to write, open or ping", () => {
    const { peer } = withTwoStreams();
    peer.send(goAway(3));
    const [stream] = peer.streams;
    stream?.write(text.encode("x"));
    stream?.finish();
    stream?.reset();
    peer.session.ping();
    expect(() => peer.session.openStream([], new StreamLog())).toThrow(/no more streams/);
    expect([stream?.isWritable, peer.take()]).toEqual([false, []]);
  });

  it("does not tell a stream that the peer had finished", () => {
    const { peer, logs } = withTwoStreams();
    peer.send(dataFrame(1, "all", true), goAway(3));
    expect(logs()).toEqual([["all FIN"], ["session-ended"]]);
    expect(peer.streams[0]?.isWritable).toBe(false);
  });
});

describe("our goAway", () => {
  it("names the last stream received, once", () => {
    const { peer } = withTwoStreams();
    peer.session.goAway();
    peer.session.goAway(GOAWAY.INTERNAL_ERROR);
    expect(peer.take()).toEqual([goAway(3)]);
  });

  it("leaves open streams open, and ignores new ones without losing the header context", () => {
    const { peer } = withTwoStreams();
    peer.session.goAway();
    peer.send(synStream(5), dataFrame(5, "x"), dataFrame(1, "still"));
    peer.streams[0]?.write(text.encode("here"));
    expect(peer.take()).toEqual([goAway(3), { type: "DATA", streamId: 1, text: "here", fin: false }]);
    expect(peer.logs[0]?.events).toEqual(["still"]);
    expect(() => peer.session.openStream([], new StreamLog())).toThrow(/no more streams/);
  });

  it("can still be sent to a peer that broke the protocol", () => {
    const peer = new ScriptedSpdyPeer("server");
    expect(() => peer.session.receive(Uint8Array.of(0x80, 3, 0, 5, 0, 0, 0, 0))).toThrow();
    peer.session.goAway(GOAWAY.PROTOCOL_ERROR);
    expect(peer.take()).toEqual([goAway(0, GOAWAY.PROTOCOL_ERROR)]);
  });
});

describe("the end of the connection", () => {
  it("TestUnexpectedRemoteConnectionClosed: every stream ends, once", () => {
    const { peer, logs } = withTwoStreams();
    peer.session.receiveEnd();
    peer.session.receiveEnd();
    expect(logs()).toEqual([["session-ended"], ["session-ended"]]);
    expect(peer.session.isOver).toBe(true);
  });

  it("TestFramingAfterRemoteConnectionClosed: frames after it are neither read nor written", () => {
    const { peer, logs } = withTwoStreams();
    peer.session.receiveEnd();
    peer.send(dataFrame(1, "x"));
    peer.streams[0]?.write(text.encode("x"));
    expect([logs()[0], peer.take()]).toEqual([["session-ended"], []]);
  });
});

describe("a broken protocol", () => {
  it("throws, ends every stream, and ends the session", () => {
    const { peer, logs } = withTwoStreams();
    expect(() => peer.send(dataFrame(1, "good"), Uint8Array.of(0x80, 3, 0, 6, 0, 0, 0, 5))).toThrow(
      expect.objectContaining({ name: "ProtocolError", code: "malformed-frame" }),
    );
    expect(logs()).toEqual([["good", "session-ended"], ["session-ended"]]);
    expect(peer.session.isOver).toBe(true);
    peer.send(dataFrame(1, "x"));
  });

  it("streams that end together do not write on each other's account", () => {
    const peer = new ScriptedSpdyPeer("server", {
      onStream: (stream, log) => ({
        onData: (part, fin) => log.onData(part, fin),
        onEnd: (end) => {
          log.onEnd(end);
          for (const other of peer.streams) other.write(text.encode("bye"));
          stream.reset(RST.INTERNAL_ERROR);
        },
      }),
    });
    peer.send(synStream(1), synStream(3));
    peer.take();
    peer.session.receiveEnd();
    expect([peer.take(), peer.logs.map((log) => log.events)]).toEqual([
      [],
      [["session-ended"], ["session-ended"]],
    ]);
  });
});
