import { PassThrough } from "node:stream";
import { beforeEach, describe, expect, it } from "vitest";
import {
  SpdyConnection,
  type SpdyConnectionEnd,
} from "../../../packages/client/src/sessions/spdy-connection.ts";
import { defaultSpdyLimits, FrameEncoder, GOAWAY, RST } from "../../../protocols/spdy/index.ts";
import { ManualClock } from "../../support/manual-clock.ts";

const GOAWAY_TYPE = 7;
const peer = new FrameEncoder();

let ends: SpdyConnectionEnd[];
let written: Uint8Array[];
let connection: SpdyConnection;

const connectionOf = (socket: PassThrough): SpdyConnection =>
  new SpdyConnection(
    socket,
    {
      onEnd: (end) => {
        ends.push(end);
        // As whoever serves it does.
        connection.finish();
      },
    },
    {
      role: "client",
      limits: defaultSpdyLimits,
      lingerTimes: { lingerIdleMs: 1_000, lingerMaxMs: 5_000 },
      clock: new ManualClock(),
      pingIntervalMs: 0,
      maxQueuedBytes: 1024 * 1024,
    },
  );

/** A connection of which we are the client, with one open stream, whose end is the end of all: that of a command. */
beforeEach(() => {
  ends = [];
  written = [];
  const socket = new PassThrough();
  const write = socket.write.bind(socket);
  socket.write = (bytes: Uint8Array) => {
    written.push(bytes);
    return write(bytes);
  };
  connection = connectionOf(socket);
  connection.openStream([["streamtype", "error"]], {
    onReply: () => {},
    onData: () => {},
    onEnd: () => connection.finish(),
  });
  written = [];
});

const reset = () => peer.encode({ type: "RST_STREAM", streamId: 1, status: RST.CANCEL });
const goAway = () => peer.encode({ type: "GOAWAY", lastGoodStreamId: 0, status: GOAWAY.OK });
const isGoAway = (bytes: Uint8Array) => bytes[3] === GOAWAY_TYPE;

describe("the end of a SPDY connection that is decided on while a chunk is read", () => {
  it("says GOAWAY behind a chunk in which the peer has not said it", () => {
    connection.receive(reset());
    expect(written.map(isGoAway)).toEqual([true]);
    expect(connection.socket.writableEnded).toBe(true);
  });

  it("says nothing to a peer whose chunk says GOAWAY, and ends", () => {
    connection.receive(Buffer.concat([reset(), goAway()]));
    expect(written).toEqual([]);
    expect(connection.socket.writableEnded).toBe(true);
  });

  it("tells nobody of an end that is its own, whatever the rest of the chunk holds", () => {
    connection.receive(Buffer.concat([reset(), goAway()]));
    connection.socket.destroy();
    expect(ends).toEqual([]);
  });

  it("ends when whoever is told of the peer's GOAWAY finishes it", () => {
    connection = connectionOf(new PassThrough());
    connection.receive(goAway());
    expect(ends).toHaveLength(1);
    expect(connection.socket.writableEnded).toBe(true);
  });

  it("closes behind a rest that can not be read", () => {
    connection.receive(Buffer.concat([reset(), new Uint8Array(16).fill(0xff)]));
    expect(ends).toEqual([]);
    expect(connection.socket.destroyed).toBe(true);
  });
});
