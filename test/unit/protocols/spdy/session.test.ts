import { describe, expect, it } from "vitest";
import { RST } from "../../../../protocols/spdy/index.ts";
import { dataFrame, ScriptedSpdyPeer, StreamLog, synStream } from "../../../support/scripted-spdy-peer.ts";

const text = new TextEncoder();
const reply = (streamId: number, fin = false) =>
  ({ type: "SYN_REPLY", streamId, fin, headers: new Map() }) as const;
const reset = (streamId: number, status: number) => ({ type: "RST_STREAM", streamId, status }) as const;
const data = (streamId: number, said: string, fin = false) =>
  ({ type: "DATA", streamId, text: said, fin }) as const;

describe("a server's session", () => {
  it("TestSpdyStreams: replies to a stream at once, carries data both ways, ends it", () => {
    const peer = new ScriptedSpdyPeer("server");
    peer.send(synStream(1), dataFrame(1, "dear sir"));
    expect(peer.take()).toEqual([reply(1)]);
    expect(peer.streams[0]?.headers).toEqual(new Map([["streamtype", "stdin"]]));
    peer.streams[0]?.write(text.encode("dear madam"));
    peer.streams[0]?.finish();
    expect(peer.take()).toEqual([data(1, "dear madam"), data(1, "", true)]);
    expect(peer.session.openStreamCount).toBe(1);
    peer.send(dataFrame(1, "yours", true));
    expect(peer.logs[0]?.events).toEqual(["dear sir", "yours FIN"]);
    expect(peer.session.openStreamCount).toBe(0);
  });

  it("replies before the first byte, even when the stream writes while it is being accepted", () => {
    const peer = new ScriptedSpdyPeer("server", {
      onStream: (stream, log) => {
        stream.write(text.encode("early"));
        stream.finish();
        return log;
      },
    });
    peer.send(synStream(1));
    expect(peer.take()).toEqual([reply(1), data(1, "early"), data(1, "", true)]);
  });

  it("refuses a stream with the status that its handler names, and hears no more of it", () => {
    const peer = new ScriptedSpdyPeer("server", { onStream: () => RST.INVALID_STREAM });
    peer.send(synStream(1), dataFrame(1, "x"));
    expect(peer.take()).toEqual([reset(1, RST.INVALID_STREAM)]);
    expect(peer.session.openStreamCount).toBe(0);
    expect(peer.logs[0]?.events).toEqual([]);
  });

  it("does not reply to a stream that its handler reset", () => {
    const peer = new ScriptedSpdyPeer("server", {
      onStream: (stream, log) => {
        stream.reset(RST.INTERNAL_ERROR);
        return log;
      },
    });
    peer.send(synStream(1));
    expect(peer.take()).toEqual([reset(1, RST.INTERNAL_ERROR)]);
  });

  it("takes ids that leave gaps, and resets one that does not rise by two", () => {
    const peer = new ScriptedSpdyPeer("server");
    peer.send(synStream(1), synStream(9), synStream(7), synStream(9), synStream(11));
    expect(peer.take()).toEqual([
      reply(1),
      reply(9),
      reset(7, RST.PROTOCOL_ERROR),
      reset(9, RST.PROTOCOL_ERROR),
      reply(11),
    ]);
    expect(peer.streams.map(({ id }) => id)).toEqual([1, 9, 11]);
  });

  it("resets a stream with an id of our parity: it could be taken for one of ours", () => {
    const peer = new ScriptedSpdyPeer("server");
    peer.send(synStream(2));
    expect(peer.take()).toEqual([reset(2, RST.PROTOCOL_ERROR)]);
    const client = new ScriptedSpdyPeer("client", { headerBlocks: "inflate" });
    client.send(synStream(1), synStream(4));
    expect(client.take()).toEqual([reset(1, RST.PROTOCOL_ERROR), reply(4)]);
  });

  it("refuses streams beyond maxStreams, yet reads their headers: those of later streams depend on them", () => {
    const peer = new ScriptedSpdyPeer("server", { limits: { maxStreams: 2 } });
    const headers = (value: string) => ({ headers: new Map([["requestid", value]]) });
    peer.send(synStream(1, headers("a")), synStream(3, headers("b")), synStream(5, headers("c")));
    expect(peer.take()).toEqual([reply(1), reply(3), reset(5, RST.REFUSED_STREAM)]);
    peer.send(reset(3, RST.CANCEL), synStream(7, headers("d")));
    expect(peer.take()).toEqual([reply(7)]);
    expect(peer.streams.map((stream) => stream.headers.get("requestid"))).toEqual(["a", "b", "d"]);
  });

  it("honours FIN on SYN_STREAM: the opener sends nothing", () => {
    const peer = new ScriptedSpdyPeer("server");
    peer.send(synStream(1, { fin: true }), dataFrame(1, "ignored"));
    expect(peer.logs[0]?.events).toEqual([" FIN"]);
    expect(peer.streams[0]?.isWritable).toBe(true);
  });

  it("honours UNIDIRECTIONAL on SYN_STREAM: we send nothing but the reply", () => {
    const peer = new ScriptedSpdyPeer("server");
    peer.send(synStream(1, { unidirectional: true }), dataFrame(1, "in", true));
    peer.streams[0]?.write(text.encode("out"));
    peer.streams[0]?.finish();
    expect(peer.take()).toEqual([reply(1)]);
    expect(peer.logs[0]?.events).toEqual(["in FIN"]);
    expect(peer.session.openStreamCount).toBe(0);
  });

  it("opens even ids itself", () => {
    const peer = new ScriptedSpdyPeer("server");
    expect([1, 2, 3].map(() => peer.session.openStream([["A", "b"]], new StreamLog()).id)).toEqual([2, 4, 6]);
    expect(peer.take()[0]).toEqual(synStream(2, { headers: new Map([["a", "b"]]) }));
  });
});

describe("a client's session", () => {
  function opened() {
    const peer = new ScriptedSpdyPeer("client");
    const log = new StreamLog();
    const stream = peer.session.openStream([["streamType", "error"]], log);
    return { peer, log, stream };
  }

  it("opens odd ids, and may write before the reply", () => {
    const { peer, log, stream } = opened();
    stream.write(text.encode("hello"));
    expect(peer.take()).toEqual([
      synStream(1, { headers: new Map([["streamtype", "error"]]) }),
      data(1, "hello"),
    ]);
    peer.send(reply(1), dataFrame(1, "hi", true));
    expect(log.events).toEqual(["reply", "hi FIN"]);
    expect(peer.session.openStream(new Map(), new StreamLog()).id).toBe(3);
  });

  it("takes DATA that comes before the reply", () => {
    const { peer, log } = opened();
    peer.send(dataFrame(1, "early"), reply(1));
    expect(log.events).toEqual(["early", "reply"]);
  });

  it("ignores a second reply, and one to no stream or to the peer's own", () => {
    const { peer, log } = opened();
    peer.send(reply(1), reply(1), reply(1, true), reply(99));
    expect(log.events).toEqual(["reply"]);
    const server = new ScriptedSpdyPeer("server");
    server.send(synStream(1), reply(1, true));
    expect(server.logs[0]?.events).toEqual([]);
  });

  it("honours FIN on SYN_REPLY and on HEADERS", () => {
    const first = opened();
    first.peer.send(reply(1, true));
    expect(first.log.events).toEqual(["reply FIN", " FIN"]);
    const second = opened();
    const headers = { type: "HEADERS", streamId: 1, headers: new Map() } as const;
    second.peer.send({ ...headers, fin: false }, { ...headers, fin: true }, dataFrame(1, "late"));
    expect(second.log.events).toEqual([" FIN"]);
  });

  it("does not let its peer open streams, unless told to inflate header blocks", () => {
    const { peer, log } = opened();
    expect(() => peer.send(synStream(2))).toThrow(expect.objectContaining({ code: "unsupported" }));
    expect(log.events).toEqual(["session-ended"]);
    const inflating = new ScriptedSpdyPeer("client", { headerBlocks: "inflate" });
    inflating.send(synStream(2));
    expect(inflating.take()).toEqual([reply(2)]);
  });
});

describe("the ends of a stream", () => {
  function accepted() {
    const peer = new ScriptedSpdyPeer("server");
    peer.send(synStream(1));
    peer.take();
    const [stream] = peer.streams;
    const [log] = peer.logs;
    if (stream === undefined || log === undefined) throw new Error("no stream");
    return { peer, stream, log };
  }

  it("TestHalfClose: after our FIN the peer may go on, after both the stream is gone", () => {
    const { peer, stream, log } = accepted();
    stream.finish();
    expect(stream.isWritable).toBe(false);
    stream.write(text.encode("too late"));
    stream.finish();
    expect(peer.take()).toEqual([data(1, "", true)]);
    peer.send(dataFrame(1, "more"), dataFrame(1, "", true));
    expect(log.events).toEqual(["more", " FIN"]);
    expect(peer.session.openStreamCount).toBe(0);
  });

  it("after the peer's FIN we may go on", () => {
    const { peer, stream } = accepted();
    peer.send(dataFrame(1, "all", true));
    stream.write(text.encode("answer"));
    stream.finish();
    expect(peer.take()).toEqual([data(1, "answer"), data(1, "", true)]);
    stream.reset();
    expect(peer.take()).toEqual([]);
  });

  it("drops DATA after FIN: nothing stops a Go peer from sending it", () => {
    const { peer, log } = accepted();
    peer.send(dataFrame(1, "all", true), dataFrame(1, "more"), dataFrame(1, "", true));
    expect(log.events).toEqual(["all FIN"]);
  });

  it("TestStreamReset: RST_STREAM ends both directions, once", () => {
    const { peer, stream, log } = accepted();
    peer.send(reset(1, RST.CANCEL), reset(1, RST.CANCEL), dataFrame(1, "late"));
    expect(log.events).toEqual(["reset 5"]);
    stream.write(text.encode("x"));
    stream.finish();
    stream.reset();
    expect(peer.take()).toEqual([]);
    expect([stream.isWritable, peer.session.openStreamCount]).toEqual([false, 0]);
  });

  it("TestStreamResetWithDataRemaining: what came before RST_STREAM is delivered before it", () => {
    const { peer, log } = accepted();
    peer.send(dataFrame(1, "status"), reset(1, RST.CANCEL));
    expect(log.events).toEqual(["status", "reset 5"]);
  });

  it("RST_STREAM after the peer's FIN ends only what we had left to say", () => {
    const { peer, stream, log } = accepted();
    peer.send(dataFrame(1, "all", true), reset(1, RST.CANCEL));
    expect(log.events).toEqual(["all FIN"]);
    expect([stream.isWritable, peer.session.openStreamCount]).toEqual([false, 0]);
  });

  it("TestStreamReadUnblocksAfterCloseThenReset: our reset after our FIN is sent, and ends the stream", () => {
    const { peer, stream, log } = accepted();
    stream.finish();
    stream.reset(RST.INTERNAL_ERROR);
    stream.reset();
    expect(peer.take()).toEqual([data(1, "", true), reset(1, RST.INTERNAL_ERROR)]);
    peer.send(dataFrame(1, "late", true));
    expect(log.events).toEqual([]);
  });

  it("ignores DATA, RST_STREAM and HEADERS of no stream", () => {
    const { peer, log } = accepted();
    peer.send(dataFrame(3, "x", true), reset(5, 1), {
      type: "HEADERS",
      streamId: 7,
      fin: true,
      headers: new Map(),
    });
    expect([peer.take(), log.events]).toEqual([[], []]);
  });

  it("a stream that its handler ends in the middle of a chunk hears nothing of the rest", () => {
    const peer = new ScriptedSpdyPeer("server", {
      onStream: (stream, log) => ({
        onData(part, fin) {
          log.onData(part, fin);
          stream.reset();
        },
        onEnd: (end) => log.onEnd(end),
      }),
    });
    peer.send(synStream(1), dataFrame(1, "one"), dataFrame(1, "two", true), reset(1, 5));
    expect(peer.logs[0]?.events).toEqual(["one"]);
  });
});
