import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FakeNode } from "../../../packages/lab/src/fake-node/fake-node.ts";
import { type ClientStream, execPath, SpdyClient, spdyUpgrade, startNode, textOf } from "./upgrade.ts";

let node: FakeNode;
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.close());

async function exec(command: readonly string[], flags: string, version = "v4.channel.k8s.io") {
  const { socket, head } = await spdyUpgrade(node, execPath(command, flags), version);
  const client = new SpdyClient(socket, head);
  const streams: Record<string, ClientStream> = { error: client.open({ streamtype: "error" }) };
  const types = { input: "stdin", output: "stdout", error: "stderr", tty: "resize" };
  for (const [flag, type] of Object.entries(types)) {
    if (new URLSearchParams(flags).get(flag) === "1") streams[type] = client.open({ streamtype: type });
  }
  const stream = (name: string): ClientStream => streams[name] as ClientStream;
  return { client, stream };
}

describe("exec over SPDY", () => {
  it("carries stdin, stdout, stderr and exit code 7, in the order of containerd", async () => {
    const command = ["sh", "-c", "cat; echo oops >&2; exit 7"];
    const { client, stream } = await exec(command, "input=1&output=1&error=1");
    stream("stdin").stream.write(Buffer.from("hello\n"));
    stream("stdin").stream.finish();
    await client.closed;
    expect(textOf(stream("stdout"))).toBe("hello\n");
    expect(textOf(stream("stderr"))).toBe("oops\n");
    expect(JSON.parse(textOf(stream("error")))).toEqual({
      metadata: {},
      status: "Failure",
      message:
        "command terminated with non-zero exit code: error executing command [sh -c cat; echo oops >&2; exit 7], exit code 7",
      reason: "NonZeroExitCode",
      details: { causes: [{ reason: "ExitCode", message: "7" }] },
    });
    const ends = ["stdout", "stderr", "stdin", "error"].map((name) => stream(name).end);
    expect(ends).toEqual(["finished", "finished", "reset", "reset"]);
    expect(client.hasGoAway).toBe(true);
  });

  it.each([
    ["success", ["true"], '{"metadata":{},"status":"Success"}'],
    ["a signal as 128 + n", ["sh", "-c", "kill -9 $$"], '"message":"137"'],
    ["a command that is not there", ["/nope"], 'exec: \\"/nope\\": stat /nope: no such file or directory"'],
    [
      "a name that is not in PATH",
      ["nope-nope"],
      'exec: \\"nope-nope\\": executable file not found in $PATH"',
    ],
  ])("reports %s", async (_name, command, word) => {
    const { client, stream } = await exec(command, "output=1");
    await client.closed;
    expect(textOf(stream("error"))).toContain(word);
  });

  it("speaks text in v3", async () => {
    const { client, stream } = await exec(["sh", "-c", "exit 3"], "output=1", "v3.channel.k8s.io");
    await client.closed;
    expect(textOf(stream("error"))).toBe(
      "command terminated with non-zero exit code: error executing command [sh -c exit 3], exit code 3",
    );
  });

  it("returns 16 MiB through cat unchanged", async () => {
    const bytes = randomBytes(16 * 1024 * 1024);
    const { client, stream } = await exec(["cat"], "input=1&output=1");
    for (let at = 0; at < bytes.length; at += 32 * 1024) {
      stream("stdin").stream.write(bytes.subarray(at, at + 32 * 1024));
      if (client.socket.writableNeedDrain) await once(client.socket, "drain");
    }
    stream("stdin").stream.finish();
    await client.closed;
    expect(Buffer.concat(stream("stdout").parts).equals(bytes)).toBe(true);
    expect(textOf(stream("error"))).toContain("Success");
  });

  it("resizes a terminal and merges stderr into stdout", async () => {
    const command = ["sh", "-c", "echo ready; read line; stty size; echo $TERM; echo oops >&2; exit 5"];
    const { client, stream } = await exec(command, "input=1&output=1&tty=1");
    while (!textOf(stream("stdout")).includes("ready")) await once(client.socket, "data");
    stream("resize").stream.write(Buffer.from('{"Width":123,"Height":45}\n'));
    stream("stdin").stream.write(Buffer.from("go\n"));
    await client.closed;
    expect(textOf(stream("stdout"))).toBe("ready\r\ngo\r\n45 123\r\nxterm\r\noops\r\n");
    expect(textOf(stream("error"))).toContain('"message":"5"');
  });

  it("gives a terminal the size that came in one read with the streams", async () => {
    const path = execPath(["stty", "size"], "input=1&output=1&tty=1");
    const { socket, head } = await spdyUpgrade(node, path, "v4.channel.k8s.io");
    const client = new SpdyClient(socket, head);
    socket.cork();
    const [, , stdout, resize] = ["error", "stdin", "stdout", "resize"].map((streamtype) =>
      client.open({ streamtype }),
    );
    resize?.stream.write(Buffer.from('{"Width":91,"Height":33}\n'));
    socket.uncork();
    await client.closed;
    expect(textOf(stdout as ClientStream)).toBe("33 91\r\n");
  });

  it.each([
    ["^D as the end of the input", "\x04", '"status":"Success"'],
    ["^C as an interrupt", "\x03", '"message":"130"'],
  ])("gives a terminal %s", async (_name, key, word) => {
    const { client, stream } = await exec(["cat"], "input=1&output=1&tty=1");
    stream("stdin").stream.write(Buffer.from("abc\n"));
    // Once as the terminal's echo, once from cat: it runs.
    while (textOf(stream("stdout")).split("abc").length < 3) await once(client.socket, "data");
    stream("stdin").stream.write(Buffer.from(key));
    await client.closed;
    expect(textOf(stream("error"))).toContain(word);
  });
});
