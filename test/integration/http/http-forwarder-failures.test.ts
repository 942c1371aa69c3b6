import { createHash, randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { afterHead, answering, openClient, until } from "../../support/http/loopback.ts";
import { closePairs, exchange, startRawPair } from "./http-pair.ts";

afterEach(closePairs);

const GET = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
const gone = (socket: Socket | undefined): boolean =>
  socket !== undefined && (socket.destroyed || socket.readableEnded);

describe("forwardExchange: who leaves early takes the other side along", () => {
  it("closes the upstream when the client leaves before the response", async () => {
    const { node, forwarder } = await startRawPair(() => {});
    const client = await openClient(forwarder.port);
    client.write(GET);
    await until(() => node.received().includes("\r\n\r\n"), "request received");
    client.destroy();
    await until(() => gone(node.sockets[0]), "upstream closed");
    expect(forwarder.errors).toEqual([]);
  });

  it("closes the upstream when the client leaves a stream", async () => {
    const { node, forwarder } = await startRawPair(
      answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"),
    );
    const client = await openClient(forwarder.port);
    client.write(GET);
    await new Promise((resolve) => client.once("data", resolve));
    client.destroy();
    await until(() => gone(node.sockets[0]), "upstream closed");
  });

  it("closes the upstream when the client breaks its body off, instead of ending it", async () => {
    const { node, forwarder } = await startRawPair(() => {});
    const client = await openClient(forwarder.port);
    client.write("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    await until(() => node.received().includes("abc"), "part received");
    client.destroy();
    await until(() => gone(node.sockets[0]), "upstream closed");
    expect(node.received()).not.toContain("0\r\n\r\n");
  });

  for (const [framing, head, body] of [
    ["length", "Content-Length: 10\r\n", "abc"],
    ["chunked", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n"],
  ] as const) {
    for (const how of ["end", "resetAndDestroy"] as const) {
      it(`never ends a truncated ${framing} body cleanly (upstream: ${how})`, async () => {
        const { node, forwarder } = await startRawPair(answering(`HTTP/1.1 200 OK\r\n${head}\r\n${body}`));
        const client = await openClient(forwarder.port);
        let received = "";
        client.on("data", (chunk) => {
          received += chunk;
        });
        client.on("end", () => client.end());
        client.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        await until(() => received.includes("abc"), "part received");
        node.sockets[0]?.[how]();
        await new Promise((resolve) => client.once("close", resolve));
        expect(received).not.toContain("\r\n0\r\n\r\n");
      });
    }
  }

  it("resets an HTTP/1.0 client of a truncated chunked body, which no framing could tell", async () => {
    const { node, forwarder } = await startRawPair(
      answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
    );
    const client = await openClient(forwarder.port);
    let received = "";
    let hasEnded = false;
    client.on("data", (chunk) => {
      received += chunk;
    });
    client.on("end", () => {
      hasEnded = true;
    });
    client.write("GET / HTTP/1.0\r\n\r\n");
    await until(() => received.includes("abc"), "part received");
    node.sockets[0]?.destroy();
    await new Promise((resolve) => client.once("close", resolve));
    expect(hasEnded).toBe(false);
  });

  it("delivers an answer that comes before the body was sent, and stops the upload", async () => {
    const { node, forwarder } = await startRawPair((socket) => {
      afterHead(socket, () => socket.write("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig"));
    });
    const client = await openClient(forwarder.port);
    client.write("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\npart");
    const first = await new Promise<Buffer>((resolve) => client.once("data", resolve));
    expect(first.toString()).toMatch(/^HTTP\/1.1 413 Too Large/);
    await until(() => gone(node.sockets[0]), "upstream closed");
    client.destroy();
  });
});

describe("forwardExchange: bad upstreams", () => {
  const rows: readonly (readonly [name: string, answer: string, expected: RegExp])[] = [
    ["garbage", "garbage\r\n\r\n", /malformed-response: /],
    [
      "two lengths",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
      /malformed-response: /,
    ],
    [
      "a length and chunks",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      /malformed-response: /,
    ],
    ["a folded line", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n", /malformed-response: /],
    ["a bare CR", "HTTP/1.1 200 OK\r\nA: b\rC: d\r\nContent-Length: 0\r\n\r\n", /malformed-response: /],
    ["NUL", "HTTP/1.1 200 OK\r\nA: \0\r\nContent-Length: 0\r\n\r\n", /malformed-response: /],
    [
      "a bad chunk behind the head",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\nx\r\n",
      /malformed-response: /,
    ],
    [
      "another coding than chunked",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      /malformed-response: /,
    ],
    [
      "an oversized head",
      `HTTP/1.1 200 OK\r\nA: ${"b".repeat(70_000)}\r\n\r\n`,
      /response-head-too-large: header size limit exceeded$/,
    ],
    [
      "an upgrade nobody asked for",
      "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
      /invalid-status: unexpected upgrade$/,
    ],
  ];
  for (const [name, answer, expected] of rows) {
    it(`answers an error for ${name} (TestErrorPropagation)`, async () => {
      const { node, forwarder } = await startRawPair(answering(answer));
      const { text } = await exchange(forwarder.port, GET);
      expect(text).toMatch(/^HTTP\/1.1 502 /);
      expect(text).toMatch(expected);
      await until(() => gone(node.sockets[0]), "upstream closed");
    });
  }

  it("breaks an answer off whose chunks go wrong later", async () => {
    const { node, forwarder } = await startRawPair(
      answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"),
    );
    const client = await openClient(forwarder.port);
    let received = "";
    client.on("data", (chunk) => {
      received += chunk;
    });
    client.on("end", () => client.end());
    client.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    await until(() => received.endsWith("a\r\n"), "first chunk");
    node.sockets[0]?.write("1\r\nb\r\n1\nc\r\n0\r\n\r\n");
    await new Promise((resolve) => client.once("close", resolve));
    expect(received).toMatch(/\r\n1\r\na\r\n(1\r\nb\r\n)?$/);
  });

  it("refuses lines that would split the request", async () => {
    const { node, forwarder } = await startRawPair(() => {}, {
      editHeaders: (edit) => {
        edit.add("X-User", "a\r\nX-Admin: 1");
        return edit;
      },
    });
    expect((await exchange(forwarder.port, GET)).text).toMatch(/invalid-request: /);
    expect(node.received()).toBe("");
  });

  it("answers an error when the upstream closes, is silent, or is not there", async () => {
    const closing = await startRawPair((socket) => afterHead(socket, () => socket.end()));
    expect((await exchange(closing.forwarder.port, GET)).text).toMatch(/closed-before-response: EOF$/);

    const silent = await startRawPair(() => {}, { responseHeaderTimeoutMs: 50 });
    expect((await exchange(silent.forwarder.port, GET)).text).toMatch(
      /response-timeout: net\/http: timeout awaiting response headers$/,
    );

    await closing.node.close();
    expect((await exchange(closing.forwarder.port, GET)).text).toMatch(
      /dial-failed: dial tcp 127\.0\.0\.1:\d+: connect: connection refused$/,
    );
  });
});

describe("forwardExchange: back-pressure", () => {
  const totalBytes = 64 * 1024 * 1024;

  it("holds little of a download that the client does not read, and delivers all of it later", async () => {
    const part = randomBytes(64 * 1024);
    let written = 0;
    const { forwarder } = await startRawPair((socket) => {
      const fill = (): void => {
        while (written < totalBytes && !socket.writableNeedDrain) {
          written += part.length;
          socket.write(part);
        }
      };
      socket.on("drain", fill);
      afterHead(socket, () => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${totalBytes}\r\n\r\n`);
        fill();
      });
    });
    const client = await openClient(forwarder.port);
    client.write(GET);
    await stable(() => written);
    // Two hops of kernel buffers (loopback grows them to some MiB each) and a few Node buffers of 64 KiB.
    expect(written).toBeLessThan(32 * 1024 * 1024);

    let received = 0;
    const digest = createHash("sha256");
    client.on("data", (chunk) => {
      received += chunk.length;
      digest.update(chunk);
    });
    client.on("end", () => client.end());
    await new Promise((resolve) => client.once("close", resolve));
    expect(received).toBeGreaterThan(totalBytes);
  });

  it("holds little of an upload that the upstream does not read", async () => {
    const { forwarder } = await startRawPair((socket) => {
      socket.pause();
    });
    const client = await openClient(forwarder.port);
    client.write(`PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: ${totalBytes}\r\n\r\n`);
    const part = randomBytes(64 * 1024);
    let written = 0;
    const fill = (): void => {
      while (written < totalBytes && !client.writableNeedDrain) {
        written += part.length;
        client.write(part);
      }
    };
    client.on("drain", fill);
    fill();
    await stable(() => written);
    expect(written).toBeLessThan(32 * 1024 * 1024);
    client.destroy();
  });
});

/** Resolves when the value has not moved for many turns of the event loop. */
async function stable(value: () => number): Promise<void> {
  let last = -1;
  let unchangedSinceMs = Date.now();
  while (Date.now() - unchangedSinceMs < 300) {
    if (value() !== last) {
      last = value();
      unchangedSinceMs = Date.now();
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}
