import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { SessionClock } from "../../../../packages/client/src/net/session-clock.ts";
import { READ_AHEAD_BYTES } from "../../../../src/net/read-ahead.ts";
import { gatewayOverKubelet } from "../../../support/gateway-over-kubelet.ts";
import { endExec, type KubeletSession, SUCCESS } from "../../../support/scripted-kubelet.ts";
import { untilStill } from "../../../support/still.ts";
import { V5Client } from "../../../support/v5-client.ts";

/** More than all buffers between the two ends together. */
const FLOOD_BYTES = 32 * 1024 * 1024;
const SMALL_BYTES = 1024 * 1024;
const PIECE_BYTES = 64 * 1024;

/** A clock on which a minute passes in a fraction of a second. */
class HurriedClock extends SessionClock {
  override now(): number {
    return super.now() * 200;
  }
}

const ONE_READ_BYTES = 64 * 1024;

let client: V5Client | undefined;
const gateway = gatewayOverKubelet(() => {
  client?.socket.terminate();
  client = undefined;
});
const { start } = gateway;

function writeAll(session: KubeletSession, stream: string, bytes: Buffer): void {
  for (let offset = 0; offset < bytes.length; offset += PIECE_BYTES) {
    session.streams.get(stream)?.write(bytes.subarray(offset, offset + PIECE_BYTES));
  }
}

const downstreamBytes = (): number => gateway.harness?.context.sessions.list()[0]?.downstreamBytes ?? 0;
const upstreamBytes = (): number => gateway.harness?.context.sessions.list()[0]?.upstreamBytes ?? 0;

describe("a client that stops reading its output", () => {
  it("still sends input, is answered when it reads again, and gets all output and the status", async () => {
    const output = randomBytes(FLOOD_BYTES);
    const input = randomBytes(SMALL_BYTES);
    const received: Buffer[] = [];
    const authority = await start({
      onStream: (name, _stream, session) => name === "stderr" && writeAll(session, "stdout", output),
      onData: (name, part) => name === "stdin" && received.push(Buffer.from(part)),
    });
    client = new V5Client(authority);
    client.socket.once("open", () => client?.socket.pause());
    await client.opened;
    const stalledAt = await untilStill("the download", downstreamBytes);
    expect(stalledAt).toBeLessThan(FLOOD_BYTES);

    const pongs: string[] = [];
    client.socket.on("pong", (payload: Buffer) => pongs.push(payload.toString()));
    for (const payload of ["first", "second", "last"]) client.socket.ping(payload);
    for (let offset = 0; offset < input.length; offset += PIECE_BYTES) {
      client.send(0, input.subarray(offset, offset + PIECE_BYTES));
    }
    await expect.poll(() => Buffer.concat(received).equals(input)).toBe(true);
    // Input has the node read ahead: a status behind its output would be found before it.
    const aheadBytes = downstreamBytes() - stalledAt;
    expect(aheadBytes).toBeGreaterThan(READ_AHEAD_BYTES / 2);
    expect(aheadBytes).toBeLessThan(READ_AHEAD_BYTES + ONE_READ_BYTES);

    client.socket.resume();
    // RFC 6455 section 5.5.3: of several PINGs the last one may be answered alone.
    await expect.poll(() => pongs).toContain("last");
    const [session] = gateway.kubelet?.sessions ?? [];
    if (session !== undefined) endExec(session, SUCCESS);
    const { stdout, status, closeCode } = await client.done;
    expect(stdout.equals(output)).toBe(true);
    expect([status, closeCode]).toEqual([SUCCESS, 1000]);
  });

  it("gets the status of a command that ended long before it reads again", async () => {
    const output = randomBytes(FLOOD_BYTES);
    const authority = await start({
      onStream: (name, _stream, session) => {
        if (name !== "stderr") return;
        writeAll(session, "stdout", output);
        endExec(session, SUCCESS);
      },
    });
    client = new V5Client(authority);
    client.socket.once("open", () => client?.socket.pause());
    await client.opened;
    await untilStill("the download", downstreamBytes);
    client.socket.resume();
    const { stdout, status, closeCode } = await client.done;
    expect(stdout.equals(output)).toBe(true);
    expect([status, closeCode]).toEqual([SUCCESS, 1000]);
  });

  it("gets output that comes behind the status, however late it reads", async () => {
    const output = randomBytes(FLOOD_BYTES);
    const authority = await start(
      {
        onStream: (name, _stream, session) => {
          if (name !== "stderr") return;
          session.streams.get("error")?.write(Buffer.from(SUCCESS));
          writeAll(session, "stdout", output);
          endExec(session, "");
        },
      },
      {
        clock: new HurriedClock(10),
        timeouts: { idleMs: Number.POSITIVE_INFINITY, lingerIdleMs: Number.POSITIVE_INFINITY },
      },
    );
    client = new V5Client(authority);
    client.socket.once("open", () => client?.socket.pause());
    await client.opened;
    const startedMs = gateway.harness?.context.clock.now() ?? 0;
    await untilStill("the download", downstreamBytes);
    // Longer than a node that has said its status may take to end its streams.
    await expect.poll(() => (gateway.harness?.context.clock.now() ?? 0) - startedMs).toBeGreaterThan(60_000);
    client.socket.resume();
    const { stdout, status, closeCode } = await client.done;
    expect(stdout.equals(output)).toBe(true);
    expect([status, closeCode]).toEqual([SUCCESS, 1000]);
  });
});

describe("a node that does not read its input", () => {
  it("does not stop output and heartbeats, and gets all input when it reads again", async () => {
    const input = randomBytes(FLOOD_BYTES);
    const output = randomBytes(SMALL_BYTES);
    let receivedBytes = 0;
    const authority = await start(
      {
        onStream: (name, _stream, session) => name === "stderr" && session.socket.pause(),
        onData: (name, part, fin, session) => {
          if (name !== "stdin") return;
          receivedBytes += part.byteLength;
          if (fin) endExec(session, SUCCESS);
        },
      },
      { timeouts: { unsolicitedPongMs: 30 }, clock: new SessionClock(10) },
    );
    client = new V5Client(authority);
    await client.opened;
    await expect.poll(() => gateway.kubelet?.sessions[0]?.streams.size).toBe(4);
    const outputOf = (): number =>
      client?.messages.reduce((sum, message) => sum + (message[0] === 1 ? message.length - 1 : 0), 0) ?? 0;
    client.socket.ping("before");
    for (let offset = 0; offset < input.length; offset += PIECE_BYTES) {
      client.send(0, input.subarray(offset, offset + PIECE_BYTES));
    }
    client.closeStdin();
    const stalledAt = await untilStill("the upload", upstreamBytes);
    expect(stalledAt).toBeLessThan(FLOOD_BYTES);
    expect(client.pongs).toBeGreaterThan(0);

    // A PING behind unread input cannot be seen, so PONGs come without being asked for.
    const pongs = client.pongs;
    await expect.poll(() => client?.pongs).toBeGreaterThan(pongs + 3);
    const [session] = gateway.kubelet?.sessions ?? [];
    if (session !== undefined) writeAll(session, "stdout", output);
    await expect.poll(outputOf).toBe(SMALL_BYTES);
    expect(upstreamBytes()).toBe(stalledAt);

    session?.socket.resume();
    const { stdout, status, closeCode } = await client.done;
    expect(receivedBytes).toBe(FLOOD_BYTES);
    expect(stdout.equals(output)).toBe(true);
    expect([status, closeCode]).toEqual([SUCCESS, 1000]);
  });

  it("that breaks off meanwhile is a failure for the client", async () => {
    const authority = await start({
      onStream: (name, _stream, session) => name === "stderr" && session.socket.pause(),
    });
    client = new V5Client(authority);
    await client.opened;
    await expect.poll(() => gateway.kubelet?.sessions[0]?.streams.size).toBe(4);
    for (let sent = 0; sent < FLOOD_BYTES; sent += PIECE_BYTES) client.send(0, Buffer.alloc(PIECE_BYTES));
    await untilStill("the upload", upstreamBytes);
    (gateway.kubelet?.sessions[0]?.socket as Socket).resetAndDestroy();
    const { status, closeCode } = await client.done;
    expect(JSON.parse(status)).toMatchObject({ status: "Failure", code: 500 });
    expect(closeCode).toBe(1000);
  });
});
