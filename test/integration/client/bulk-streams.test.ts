import { randomBytes } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import type { WebSocket } from "ws";
import { WebSocketExecutor } from "../../../packages/client/src/executors.ts";
import { execPath } from "../../../packages/client/src/pod-paths.ts";
import type { PartTaker } from "../../../packages/client/src/sessions/output-sink.ts";
import {
  endSession,
  onChannel,
  startWebSocketServer,
  type TestWebSocketServer,
} from "../../support/client/websocket-server.ts";
import { openSocketCount, until } from "../../support/http/loopback.ts";

const exec = execPath({ namespace: "default", pod: "web", container: "main" }, ["cat"]);
const STDOUT = 1;

let server: TestWebSocketServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
  await until(() => openSocketCount() === 0, "all sockets are closed");
});

async function executor(onSession: (socket: WebSocket) => void): Promise<WebSocketExecutor> {
  server = await startWebSocketServer(onSession);
  return new WebSocketExecutor(server.target, exec);
}

/** Takes copies; says after each that it takes more when `room` lets it. */
class Taken implements PartTaker {
  readonly parts: Buffer[] = [];
  bytes = 0;
  readonly #room: () => Promise<void> | undefined;

  constructor(room: () => Promise<void> | undefined = () => undefined) {
    this.#room = room;
  }

  takePart(part: Uint8Array): Promise<void> | undefined {
    this.parts.push(Buffer.from(part));
    this.bytes += part.byteLength;
    return this.#room();
  }
}

/** Gives the same memory for every chunk, as files are read. */
async function* reusing(bytes: Uint8Array, chunkBytes: number): AsyncGenerator<Uint8Array, void, void> {
  const memory = new Uint8Array(chunkBytes);
  for (let at = 0; at < bytes.byteLength; at += chunkBytes) {
    const part = bytes.subarray(at, at + chunkBytes);
    memory.set(part);
    yield memory.subarray(0, part.byteLength);
    memory.fill(0xee);
  }
}

function echo(socket: WebSocket): void {
  socket.on("message", (message: Buffer) => {
    if (message[0] === 255) endSession(socket);
    else socket.send(onChannel(STDOUT, message.subarray(1)));
  });
}

describe("bulk streams of the client", () => {
  it.each([
    1,
    100,
    32_759,
    32_760,
    240 * 1024,
    1024 * 1024,
  ])("input of an iterable that reuses its memory in chunks of %i arrives whole, in frames of 32 KiB at most", async (chunkBytes) => {
    const bytes = randomBytes(Math.min(chunkBytes * 7, 3 * 1024 * 1024) + 3);
    let largest = 0;
    const output = new Taken();
    const run = (
      await executor((socket) => {
        socket.on("message", (message: Buffer) => {
          largest = Math.max(largest, message.byteLength);
        });
        echo(socket);
      })
    ).stream({ stdin: reusing(bytes, chunkBytes), stdout: output });
    expect(await run).toEqual({ exitCode: 0, message: "" });
    expect(Buffer.concat(output.parts).equals(bytes)).toBe(true);
    expect(largest).toBeLessThanOrEqual(32 * 1024);
  });

  it("input that waits for a server that does not read is not overwritten by another session's", async () => {
    const waiting = randomBytes(24 * 1024 * 1024);
    const other = randomBytes(24 * 1024 * 1024);
    const sessions: WebSocket[] = [];
    const open = await executor((socket) => {
      sessions.push(socket);
      if (sessions.length === 1) socket.pause();
      echo(socket);
    });
    let given = 0;
    const counted = async function* (): AsyncGenerator<Uint8Array, void, void> {
      for await (const part of reusing(waiting, 240 * 1024)) {
        given += part.byteLength;
        yield part;
      }
    };
    const output = new Taken();
    const first = open.stream({ stdin: counted(), stdout: output });
    let before = -1;
    await until(() => {
      const isStill = given > 0 && given === before;
      before = given;
      return isStill;
    }, "the server's buffers are full");
    expect(given).toBeLessThan(waiting.byteLength);
    const second = new Taken();
    expect(await open.stream({ stdin: reusing(other, 240 * 1024), stdout: second })).toEqual({
      exitCode: 0,
      message: "",
    });
    expect(Buffer.concat(second.parts).equals(other)).toBe(true);
    sessions[0]?.resume();
    expect(await first).toEqual({ exitCode: 0, message: "" });
    expect(Buffer.concat(output.parts).equals(waiting)).toBe(true);
  });

  it("an output that is full stops the server, and nothing of what came meanwhile is lost", async () => {
    const bytes = randomBytes(16 * 1024 * 1024);
    let sent = 0;
    let held: (() => void)[] = [];
    const output = new Taken(() => new Promise((resolve) => held.push(resolve)));
    const run = (
      await executor((socket) => {
        const send = (): void => {
          if (sent === bytes.byteLength) endSession(socket);
          else {
            sent += 65_536;
            socket.send(onChannel(STDOUT, bytes.subarray(sent - 65_536, sent)), send);
          }
        };
        send();
      })
    ).stream({ stdout: output });
    await until(() => output.bytes > 0, "the first part is there");
    const taken = output.bytes;
    // The server sends until every buffer on the way is full: then nothing moves any more.
    let before = -1;
    await until(() => {
      const isStill = sent === before;
      before = sent;
      return isStill;
    }, "the server is held up");
    expect(sent).toBeLessThan(bytes.byteLength);
    expect(output.bytes - taken).toBeLessThan(256 * 1024);
    const opening = setInterval(() => {
      for (const resolve of held) resolve();
      held = [];
    }, 0);
    expect(await run).toEqual({ exitCode: 0, message: "" });
    clearInterval(opening);
    expect(Buffer.concat(output.parts).equals(bytes)).toBe(true);
  });

  it("an output that cannot take more ends the session with its error", async () => {
    const cause = Object.assign(new Error("ENOSPC: no space left on device, write"), { syscall: "write" });
    const run = (await executor((socket) => socket.send(onChannel(STDOUT, Buffer.from("x"))))).stream({
      stdout: new Taken(() => Promise.reject(cause)),
    });
    await expect(run).rejects.toMatchObject({ code: "output-failed", cause });
  });

  it("an iterable that fails ends the session with its error, and one that is not needed any more is returned", async () => {
    const cause = new Error("EIO");
    const failing = (async function* () {
      yield Buffer.from("x");
      throw cause;
    })();
    const run = (await executor(() => {})).stream({ stdin: failing });
    await expect(run).rejects.toMatchObject({ code: "input-failed", cause });
    await server?.close();

    let isReturned = false;
    const endless = (async function* () {
      try {
        for (;;) yield Buffer.from("x");
      } finally {
        isReturned = true;
      }
    })();
    const ended = (await executor((socket) => socket.once("message", () => endSession(socket)))).stream({
      stdin: endless,
    });
    expect(await ended).toEqual({ exitCode: 0, message: "" });
    await until(() => isReturned, "the iterable was returned");
  });
});
