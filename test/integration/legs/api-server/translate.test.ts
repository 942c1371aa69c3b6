import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { gatewayOverKubelet } from "../../../support/gateway-over-kubelet.ts";
import { endExec, type KubeletScript, SUCCESS } from "../../../support/scripted-kubelet.ts";
import { V5Client } from "../../../support/v5-client.ts";

const exitStatus = (code: number): string =>
  `{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: error executing command [x], exit code ${code}","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"${code}"}]}}`;

const gateway = gatewayOverKubelet();
const { start } = gateway;

/** Copies stdin to an output stream and succeeds at its end. */
const loopback = (output: "stdout" | "stderr"): KubeletScript => ({
  onData: (name, part, fin, session) => {
    if (name !== "stdin") return;
    if (part.byteLength > 0) session.streams.get(output)?.write(Uint8Array.from(part));
    if (fin) endExec(session, SUCCESS);
  },
});

describe("translate", () => {
  for (const output of ["stdout", "stderr"] as const) {
    it(`TestStreamTranslator_LoopbackStdinTo${output}: 1 MiB comes back whole`, async () => {
      const client = new V5Client(await start(loopback(output)));
      await client.opened;
      const data = randomBytes(1024 * 1024);
      for (let offset = 0; offset < data.length; offset += 40_000)
        client.send(0, data.subarray(offset, offset + 40_000));
      client.closeStdin();
      const result = await client.done;
      expect(result[output].equals(data)).toBe(true);
      expect(result.status).toBe(SUCCESS);
      expect(result.closeCode).toBe(1000);
      await expect
        .poll(() => gateway.harness?.metric("apiserver_stream_translator_requests_total"))
        .toEqual(['apiserver_stream_translator_requests_total{code="200"} 1']);
    });
  }

  it("asks the kubelet as kube-apiserver does: POST, v4 to v2, the flags that are true, nothing of the client's", async () => {
    const authority = await start({
      onStream: (name, _stream, session) => name === "stderr" && endExec(session, SUCCESS),
    });
    const client = new V5Client(
      authority,
      "command=ls&command=a%20b&stdout=1&stderr=true&stdin=false&container=main",
    );
    await client.done;
    const request = gateway.kubelet?.requests[0];
    expect(request?.method).toBe("POST");
    expect(request?.url).toBe("/exec/default/web/main?command=ls&command=a+b&error=1&output=1");
    expect(request?.headersDistinct["x-stream-protocol-version"]).toEqual([
      "v4.channel.k8s.io",
      "v3.channel.k8s.io",
      "v2.channel.k8s.io",
    ]);
    expect(Object.keys(request?.headers ?? {}).sort()).toEqual([
      "connection",
      "content-length",
      "host",
      "upgrade",
      "x-stream-protocol-version",
    ]);
  });

  it("sends a channel-only message first", async () => {
    const authority = await start({
      onStream: (name, _stream, session) => name === "stdout" && endExec(session, SUCCESS),
    });
    const client = new V5Client(authority, "stdout=true");
    await client.done;
    expect(client.messages[0]).toEqual(Buffer.of(1));
  });

  it("TestStreamTranslator_ErrorStream: exit codes 1 to 127 arrive as the node said them", async () => {
    const authority = await start({
      onStream: (name, _stream, session) => {
        if (name !== "stdout") return;
        const code = Number(new URL(`http://x${session.request.url}`).searchParams.get("command"));
        endExec(session, exitStatus(code));
      },
    });
    for (let code = 1; code <= 127; code++) {
      const { status, closeCode } = await new V5Client(authority, `command=${code}&stdout=true`).done;
      expect(status).toBe(exitStatus(code));
      expect(closeCode).toBe(1000);
    }
    await expect
      .poll(() => gateway.harness?.metric("apiserver_stream_translator_requests_total"))
      .toEqual(['apiserver_stream_translator_requests_total{code="200"} 127']);
  });

  it("TestStreamTranslator_MultipleReadChannels: stdout and stderr together", async () => {
    const out = randomBytes(700_000);
    const err = randomBytes(600_000);
    const authority = await start({
      onStream: (name, _stream, session) => {
        if (name !== "stderr") return;
        for (let offset = 0; offset < out.length; offset += 10_000) {
          session.streams.get("stdout")?.write(out.subarray(offset, offset + 10_000));
          if (offset < err.length)
            session.streams.get("stderr")?.write(err.subarray(offset, offset + 10_000));
        }
        endExec(session, SUCCESS);
      },
    });
    const result = await new V5Client(authority, "stdout=true&stderr=true").done;
    expect(result.stdout.equals(out)).toBe(true);
    expect(result.stderr.equals(err)).toBe(true);
  });

  it("TestStreamTranslator_ThrottleReadChannels: two streams share the bound, and arrive whole", async () => {
    const part = randomBytes(20_000);
    const bytesPerSecond = 900 * 1024;
    const authority = await start(
      {
        onStream: (name, _stream, session) => {
          if (name !== "stderr") return;
          for (let count = 0; count < 30; count++)
            for (const output of ["stdout", "stderr"]) session.streams.get(output)?.write(part);
          endExec(session, SUCCESS);
        },
      },
      { limits: { maxConnectionBytesPerSecond: bytesPerSecond } },
    );
    const startedMs = performance.now();
    const result = await new V5Client(authority, "stdout=true&stderr=true").done;
    const whole = Buffer.concat(Array.from({ length: 30 }, () => part));
    expect([result.stdout.equals(whole), result.stderr.equals(whole)]).toEqual([true, true]);
    expect(result.status).toBe(SUCCESS);
    // A tenth of a second's worth passes at once, and the last chunk is not waited for.
    const leastMs = ((2 * whole.length - 64 * 1024) / bytesPerSecond - 0.1) * 1_000;
    expect(performance.now() - startedMs).toBeGreaterThan(leastMs);
  });

  it("TestStreamTranslator_TTYResizeChannel: 10,000 sizes arrive in order", async () => {
    const received: Buffer[] = [];
    const authority = await start({
      onData: (name, part, fin, session) => {
        if (name === "resize") received.push(Buffer.from(part));
        if (name === "stdin" && fin) endExec(session, SUCCESS);
      },
    });
    const client = new V5Client(authority, "stdin=true&stdout=true&tty=true");
    await client.opened;
    const sizes = Array.from({ length: 10_000 }, (_, index) => `{"Width":${index},"Height":${index + 1}}\n`);
    for (const size of sizes) client.send(4, size);
    client.closeStdin();
    await client.done;
    expect(Buffer.concat(received).toString()).toBe(sizes.join(""));
  });

  it("drops resizes without a TTY instead of hanging on the second one", async () => {
    const client = new V5Client(await start(loopback("stdout")));
    await client.opened;
    for (let index = 0; index < 5; index++) client.send(4, '{"Width":1,"Height":1}\n');
    client.send(0, "still here");
    client.closeStdin();
    expect((await client.done).stdout.toString()).toBe("still here");
  });

  it("TestStreamTranslator_WebSocketServerErrors: a client that offers only v4 is not translated", async () => {
    const authority = await start({ refuse: () => "HTTP/1.1 403 Forbidden\r\n\r\n" });
    const { WebSocket } = await import("ws");
    const socket = new WebSocket(
      `ws://${authority}/api/v1/namespaces/default/pods/web/exec?stdout=1`,
      "v4.channel.k8s.io",
    );
    const status = await new Promise((resolve) => {
      socket.on("unexpected-response", (_request, response) => resolve(response.statusCode));
      socket.on("error", () => {});
    });
    expect(status).toBe(403);
    await expect
      .poll(() => gateway.harness?.metric("apiserver_stream_translator_requests_total{"))
      .toEqual(['apiserver_stream_translator_requests_total{code="200"} 0']);
  });

  it("a node that dies in mid-session is a failure, never silence", async () => {
    const authority = await start({
      onStream: (name, _stream, session) => {
        if (name !== "stderr") return;
        session.streams.get("stdout")?.write(Buffer.from("half an answer"));
        session.socket.end();
      },
    });
    const result = await new V5Client(authority, "stdout=true&stderr=true").done;
    expect(result.stdout.toString()).toBe("half an answer");
    expect(JSON.parse(result.status)).toMatchObject({
      status: "Failure",
      reason: "InternalError",
      code: 500,
    });
    expect(result.status).toContain("the node ended the session without a status");
    expect(result.closeCode).toBe(1000);
  });

  for (const protocol of ["v3.channel.k8s.io", "v2.channel.k8s.io"]) {
    it(`${protocol}: text becomes a Status, and an orderly empty error stream is success`, async () => {
      let text = "";
      const authority = await start({
        protocol,
        onStream: (name, _stream, session) => name === "stdout" && endExec(session, text),
      });
      expect((await new V5Client(authority, "stdout=true").done).status).toBe(SUCCESS);
      text = "it broke";
      const { status } = await new V5Client(authority, "stdout=true").done;
      expect(JSON.parse(status)).toMatchObject({
        status: "Failure",
        message: "Internal error occurred: it broke",
      });
    });
  }

  it("fragmented client messages, data after CLOSE and unknown channels do no harm", async () => {
    const client = new V5Client(await start(loopback("stdout")));
    await client.opened;
    client.socket.send(Buffer.concat([Buffer.of(0), Buffer.from("one ")]), { fin: false });
    client.socket.send(Buffer.from("message"), { fin: true });
    client.send(1, "not yours");
    client.send(77, "unknown");
    client.socket.send(Buffer.alloc(0));
    client.closeStdin();
    client.send(0, "late");
    expect((await client.done).stdout.toString()).toBe("one message");
  });

  it("a malformed CLOSE ends the connection as an error", async () => {
    const client = new V5Client(await start(loopback("stdout")));
    await client.opened;
    client.socket.send(Buffer.of(255, 0, 0));
    const { closeCode, status } = await client.done;
    expect(closeCode).not.toBe(1000);
    expect(status).toBe("");
  });
});
