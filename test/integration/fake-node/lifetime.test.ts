import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createSelfSignedCertificate } from "../../../packages/client/src/net/self-signed.ts";
import type { FakeNode } from "../../../packages/lab/src/fake-node/fake-node.ts";
import { type ClientStream, execPath, POD, SpdyClient, spdyUpgrade, startNode, textOf } from "./upgrade.ts";

let node: FakeNode;
let directory: string;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "fake-node-"));
  const containers = [
    { name: "main" },
    { name: "cat", command: ["sh", "-c", "while read line; do echo got:$line; echo err >&2; done; exit 9"] },
  ];
  node = await startNode({ pods: [{ ...POD, containers }], limits: { streamCreationTimeoutMs: 200 } });
});
afterAll(async () => {
  await node.close();
  rmSync(directory, { recursive: true });
});

async function open(path: string, types: readonly string[]) {
  const { socket, head } = await spdyUpgrade(node, path, "v4.channel.k8s.io");
  const client = new SpdyClient(socket, head);
  const streams = new Map(types.map((type) => [type, client.open({ streamtype: type })]));
  const stream = (type: string): ClientStream => streams.get(type) as ClientStream;
  const printed = async (text: string): Promise<void> => {
    while (!textOf(stream("stdout")).includes(text)) await once(socket, "data");
  };
  return { client, stream, printed };
}

/** A zombie that nobody has reaped counts as gone. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

describe("a client that goes away", () => {
  it("takes the process and its children with it", async () => {
    const script = "sleep 1000 & echo pids $$ $! end; wait";
    const { client, stream, printed } = await open(execPath(["sh", "-c", script], "output=1"), [
      "error",
      "stdout",
    ]);
    await printed("end");
    const pids = textOf(stream("stdout")).match(/\d+/g)?.map(Number) ?? [];
    expect(pids.filter(isAlive)).toHaveLength(2);
    client.socket.destroy();
    await vi.waitFor(() => expect(pids.filter(isAlive)).toEqual([]));
  });

  it("hangs up a terminal", async () => {
    const mark = join(directory, "hung-up");
    const script = `trap 'echo > ${mark}; exit' HUP; echo ready; while :; do sleep 0.1; done`;
    const { client, printed } = await open(execPath(["sh", "-c", script], "output=1&tty=1"), [
      "error",
      "stdout",
      "resize",
    ]);
    await printed("ready");
    client.socket.destroy();
    await vi.waitFor(() => expect(existsSync(mark)).toBe(true), 5_000);
  });

  it("leaves no session behind", async () => {
    await vi.waitFor(() => expect(node.sessionCount).toBe(0), 5_000);
  });
});

describe("a slow client", () => {
  it.each([
    ["a pipe", "output=1", ["error", "stdout"], 8 * 1024 * 1024],
    ["a terminal", "output=1&tty=1", ["error", "stdout", "resize"], 1024 * 1024],
  ])("gets all of the output of %s, and the status, after the process is gone", async (_name, flags, types, length) => {
    const { client, stream, printed } = await open(
      execPath(["sh", "-c", `printf ready; head -c ${length} /dev/zero`], flags),
      types,
    );
    await printed("ready");
    client.socket.pause();
    // Pings are what makes a careless server lose its last output.
    client.session.ping();
    const resumed = setInterval(() => {
      client.socket.resume();
      setImmediate(() => client.socket.isPaused() || client.socket.pause());
      client.session.ping();
    }, 2);
    await Promise.race([client.closed, stream("error").ended]);
    clearInterval(resumed);
    client.socket.resume();
    await stream("error").ended;
    expect(Buffer.concat(stream("stdout").parts).length).toBe(length + "ready".length);
    expect(textOf(stream("error"))).toBe('{"metadata":{},"status":"Success"}');
  });

  it("pauses the process instead of buffering its output", async () => {
    const before = process.memoryUsage().rss;
    const { client, printed } = await open(
      execPath(["sh", "-c", "echo ready; exec cat /dev/zero"], "output=1"),
      ["error", "stdout"],
    );
    await printed("ready");
    client.socket.pause();
    let seen = -1;
    // The process stands still when its kernel counter of written bytes does.
    await vi.waitUntil(
      () => {
        const written = client.socket.bytesRead;
        const isStill = written === seen;
        seen = written;
        return isStill;
      },
      { interval: 100 },
    );
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
    client.socket.destroy();
  });
});

describe("stdin that nobody reads", () => {
  it("stops the connection after the limit, and is discarded when the process ends", async () => {
    const mark = join(directory, "go");
    const script = `until [ -e ${mark} ]; do sleep 0.05; done; exit 4`;
    const { client, stream } = await open(execPath(["sh", "-c", script], "input=1&output=1"), [
      "error",
      "stdin",
      "stdout",
    ]);
    for (let part = 0; part < 512; part++) stream("stdin").stream.write(Buffer.alloc(32 * 1024));
    // 16 MiB do not fit into the kernel's buffers and 1 MiB of the node: some of it must wait here.
    await vi.waitFor(() => expect(client.socket.writableLength).toBeGreaterThan(0));
    writeFileSync(mark, "");
    await stream("error").ended;
    expect(textOf(stream("error"))).toContain('"message":"4"');
  });
});

describe("attach", () => {
  it("shares the main process among several clients, and lets them come and go", async () => {
    const path = "/attach/default/web/cat?input=1&output=1&error=1";
    const types = ["error", "stdin", "stdout", "stderr"];
    const first = await open(path, types);
    const second = await open(path, types);
    // A client is attached once its streams are answered: the second one's echo proves both.
    second.stream("stdin").stream.write(Buffer.from("two\n"));
    await second.printed("got:two");
    first.stream("stdin").stream.write(Buffer.from("one\n"));
    await Promise.all([first.printed("got:one"), second.printed("got:one")]);
    first.stream("stdin").stream.finish();
    first.client.socket.destroy();
    second.stream("stdin").stream.write(Buffer.from("three\n"));
    await second.printed("got:three");
    expect(textOf(second.stream("stderr"))).toContain("err\n");
    second.client.socket.destroy();
  });
});

describe("a client that opens too few streams", () => {
  it("is let go after the time limit", async () => {
    const { client } = await open(execPath(["true"], "output=1"), ["error"]);
    client.socket.on("end", () => client.socket.end());
    await client.closed;
    expect(client.hasGoAway).toBe(true);
  });
});

describe("TLS", () => {
  it("takes a client certificate of its authority, and nothing else", async () => {
    const server = await createSelfSignedCertificate(["node-a"]);
    const kubelet = await createSelfSignedCertificate([], "kube-apiserver");
    const secure = await startNode({ tls: { ...server, clientCaPem: kubelet.certPem } });
    const statusFor = async (identity: { cert?: string; key?: string }): Promise<string> => {
      const socket: TLSSocket = connect({
        port: secure.port,
        host: secure.address,
        ca: server.certPem,
        servername: "node-a",
        ...identity,
      });
      socket.end(`GET /exec/default/web/main?output=1 HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n`);
      return Buffer.concat(await socket.toArray())
        .toString()
        .slice(9, 12);
    };
    expect(await statusFor({})).toBe("401");
    expect(await statusFor({ cert: kubelet.certPem, key: kubelet.keyPem })).toBe("500");
    expect(await statusFor({ cert: server.certPem, key: server.keyPem })).toBe("401");
    await secure.close();
  });

  it("ends although a client left within its handshake", async () => {
    const secure = await startNode({ tls: await createSelfSignedCertificate(["node-a"]) });
    const client = connectTcp({ port: secure.port, host: secure.address, allowHalfOpen: true });
    await once(client, "connect");
    // The beginning of a ClientHello, and FIN; the answer to a whole request on another connection comes behind it.
    client.end(Buffer.from([22, 3, 1, 2, 0, 1, 0, 1]));
    const next: TLSSocket = connect({ port: secure.port, host: secure.address, rejectUnauthorized: false });
    await once(next, "secureConnect");
    next.destroy();
    await secure.close();
    client.destroy();
  });
});
