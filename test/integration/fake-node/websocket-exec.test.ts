import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import type { FakeNode } from "../../../packages/lab/src/fake-node/fake-node.ts";
import { execPath, startNode } from "./upgrade.ts";

let node: FakeNode;
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.close());

interface Session {
  readonly socket: WebSocket;
  /** By channel. */
  readonly output: Map<number, Buffer[]>;
  readonly messages: Buffer[];
  /** The close code. */
  readonly closed: Promise<number>;
}

function open(path: string, subprotocol: string): Session {
  const socket = new WebSocket(`ws://${node.address}:${node.port}${path}`, subprotocol, {
    perMessageDeflate: false,
  });
  const output = new Map<number, Buffer[]>();
  const messages: Buffer[] = [];
  const isBase64 = subprotocol.includes("base64");
  socket.on("message", (data: Buffer) => {
    messages.push(data);
    const channel = (data[0] ?? 0) - (isBase64 ? 0x30 : 0);
    const payload = isBase64 ? Buffer.from(data.subarray(1).toString(), "base64") : data.subarray(1);
    output.set(channel, [...(output.get(channel) ?? []), payload]);
  });
  const closed = once(socket, "close").then(([code]) => code as number);
  return { socket, output, messages, closed };
}

const textOf = ({ output }: Session, channel: number): string =>
  Buffer.concat(output.get(channel) ?? []).toString();
const message = (channel: number, text: string): Buffer => Buffer.from([channel, ...Buffer.from(text)]);

describe("exec over WebSocket", () => {
  it("ends stdin by CLOSE in v5, and words the status as the kubelet's translator", async () => {
    const session = open(
      execPath(["sh", "-c", "cat; echo oops >&2; exit 7"], "input=1&output=1&error=1"),
      "v5.channel.k8s.io",
    );
    await once(session.socket, "open");
    session.socket.send(message(0, "hello\n"));
    session.socket.send(Buffer.from([255, 0]));
    session.socket.send(message(0, "dropped"));
    expect(await session.closed).toBe(1000);
    expect(session.messages[0]).toEqual(Buffer.from([1]));
    expect(textOf(session, 1)).toBe("hello\n");
    expect(textOf(session, 2)).toBe("oops\n");
    expect(JSON.parse(textOf(session, 3)).message).toBe(
      "command terminated with non-zero exit code: command terminated with exit code 7",
    );
    expect(session.messages.at(-1)?.[0]).toBe(3);
  });

  it.each([
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "channel.k8s.io",
    "base64.channel.k8s.io",
  ])("carries input, output and exit code 3 over %s", async (subprotocol) => {
    const session = open(
      execPath(["sh", "-c", "read line; echo out:$line; exit 3"], "input=1&output=1"),
      subprotocol,
    );
    await once(session.socket, "open");
    session.socket.send(subprotocol.includes("base64") ? `0${btoa("hello\n")}` : message(0, "hello\n"));
    expect(await session.closed).toBe(1000);
    expect(textOf(session, 1)).toBe("out:hello\n");
    const cause = "error executing command [sh -c read line; echo out:$line; exit 3], exit code 3";
    expect(textOf(session, 3)).toContain(`command terminated with non-zero exit code: ${cause}`);
    expect(textOf(session, 3).startsWith("{")).toBe(subprotocol.startsWith("v4"));
  });

  it.each([
    ["output=1&error=1", 1],
    ["error=1", 2],
    ["input=1", 3],
  ])("says first that the channels are open, with %s on channel %i", async (flags, channel) => {
    const session = open(execPath(["true"], flags), "v4.channel.k8s.io");
    expect(await session.closed).toBe(1000);
    expect(session.messages[0]).toEqual(Buffer.from([channel]));
  });

  it("ignores a v5 CLOSE in v4, as CRI servers do", async () => {
    const session = open(
      execPath(["sh", "-c", "read a; read b; echo $a$b"], "input=1&output=1"),
      "v4.channel.k8s.io",
    );
    await once(session.socket, "open");
    for (const part of [message(0, "a\n"), Buffer.from([255, 0]), message(9, "lost"), message(0, "b\n")]) {
      session.socket.send(part);
    }
    await session.closed;
    expect(textOf(session, 1)).toBe("ab\n");
  });

  it("closes with 1002 at a CLOSE of channel 9", async () => {
    const session = open(execPath(["cat"], "input=1&output=1"), "v5.channel.k8s.io");
    await once(session.socket, "open");
    session.socket.send(Buffer.from([255, 9]));
    expect(await session.closed).toBe(1002);
  });

  it("returns 16 MiB through cat unchanged", async () => {
    const bytes = randomBytes(16 * 1024 * 1024);
    const session = open(execPath(["cat"], "input=1&output=1"), "v5.channel.k8s.io");
    await once(session.socket, "open");
    for (let at = 0; at < bytes.length; at += 32 * 1024) {
      const part = Buffer.concat([Buffer.from([0]), bytes.subarray(at, at + 32 * 1024)]);
      await new Promise((sent) => session.socket.send(part, sent));
    }
    session.socket.send(Buffer.from([255, 0]));
    expect(await session.closed).toBe(1000);
    expect(Buffer.concat(session.output.get(1) ?? []).equals(bytes)).toBe(true);
    expect(Math.max(...session.messages.map((data) => data.length))).toBeLessThanOrEqual(32 * 1024 + 1);
  });

  it("resizes a terminal", async () => {
    const session = open(
      execPath(["sh", "-c", "echo ready; read x; stty size"], "input=1&output=1&tty=1"),
      "v5.channel.k8s.io",
    );
    while (!textOf(session, 1).includes("ready")) await once(session.socket, "message");
    session.socket.send(message(4, '{"Width":100,'));
    session.socket.send(message(4, '"Height":30}'));
    session.socket.send(message(0, "\n"));
    expect(await session.closed).toBe(1000);
    expect(textOf(session, 1)).toContain("30 100\r\n");
  });
});
