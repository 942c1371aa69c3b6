import { once } from "node:events";
import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { exitStatus, onChannel, SUCCESS } from "../../support/client/websocket-server.ts";
import type { Sluice } from "../../support/sluice.ts";
import { SluiceAtPort } from "../../support/sluice-at-port.ts";

const [STDOUT, STDERR, ERROR] = [1, 2, 3];
const pod = JSON.stringify({
  kind: "Pod",
  metadata: { name: "web", namespace: "default" },
  spec: { containers: [{ name: "main" }] },
  status: { phase: "Running" },
});
const INSPECTED = "kind file\nstat 4 1 1\nmode 644\ntool tail\npath /data";

/** What a first look finds. */
let inspected = INSPECTED;
let api: Server;
let folder: string;
let client: SluiceAtPort;
let sluice: Sluice;
/** What a read of the file is answered with, after a first look that goes well. */
let answer: (socket: WebSocket) => void;

beforeEach(async () => {
  inspected = INSPECTED;
  api = createServer((_request, response) => response.setHeader("Content-Type", "application/json").end(pod));
  const webSockets = new WebSocketServer({ server: api, handleProtocols: () => "v5.channel.k8s.io" });
  webSockets.on("connection", (socket, request) => {
    socket.on("error", () => {});
    if (!decodeURIComponent(request.url ?? "").includes("kind+$k")) {
      answer(socket);
      return;
    }
    socket.send(onChannel(STDOUT, inspected));
    socket.send(onChannel(ERROR, SUCCESS));
    socket.close(1000);
  });
  api.listen(0, "127.0.0.1");
  await once(api, "listening");
  client = new SluiceAtPort((api.address() as AddressInfo).port);
  ({ folder, sluice } = client);
});
afterEach(async () => {
  api.closeAllConnections();
  api.close();
  await once(api, "close");
  client.remove();
});

const saying =
  (...messages: readonly (Buffer | string)[]) =>
  (socket: WebSocket): void => {
    for (const message of messages) socket.send(message, { binary: typeof message !== "string" });
    socket.close(1000);
  };
const data = onChannel(STDOUT, "data");
const afterwards = onChannel(STDERR, "afterwards 4 1 1\n");

describe("sluice cp and servers that break the rules", () => {
  it("copies from one that keeps them", async () => {
    answer = saying(data, afterwards, onChannel(ERROR, SUCCESS));
    expect(await sluice.run(["cp", "web:/data", `${folder}/out`])).toEqual({
      exitCode: 0,
      stdout: "",
      stderr: "",
    });
    expect(readdirSync(folder).sort()).toEqual(["kubeconfig", "out"]);
  });

  it.each<[string, readonly (Buffer | string)[], RegExp]>([
    ["no status at all", [data, afterwards], /without a status/],
    ["exit code 300", [data, afterwards, onChannel(ERROR, exitStatus(300))], /invalid exit code value "300"/],
    ["a text frame", [data, "\u0001text"], /unexpected message type: 1/],
    ["an empty message", [data, Buffer.alloc(0)], /read stream id: EOF/],
    [
      "too little, and success",
      [onChannel(STDOUT, "da"), afterwards, onChannel(ERROR, SUCCESS)],
      /2 bytes arrived of 4/,
    ],
    [
      "success without a word on the file",
      [data, onChannel(ERROR, SUCCESS)],
      /did not say that this was all/,
    ],
    [
      "another file by then",
      [data, onChannel(STDERR, "afterwards 4 2 1\n"), onChannel(ERROR, SUCCESS)],
      /file changed as we read it/,
    ],
    [
      "a failure of cat",
      [data, onChannel(STDERR, "cat: I/O error"), onChannel(ERROR, exitStatus(1))],
      /exit code 1: cat: I\/O error/,
    ],
  ])("%s: exit code 1, a sentence, and nothing that looks complete", async (_what, messages, words) => {
    answer = saying(...messages);
    const result = await sluice.run(["cp", "--retries", "0", "web:/data", `${folder}/out`]);
    expect(result.exitCode).toBe(1);
    expect(result.stderr).toMatch(/^error: .*\n$/);
    expect(result.stderr).toMatch(words);
    expect(readdirSync(folder)).not.toContain("out");
  });

  it("a 255 to the client, and channels that nobody knows, are not output", async () => {
    const closed = Buffer.of(255, STDOUT);
    answer = saying(closed, onChannel(9, "x"), data, afterwards, onChannel(ERROR, SUCCESS));
    expect(await sluice.run(["cp", "web:/data", `${folder}/out`])).toMatchObject({ exitCode: 0, stderr: "" });
    expect(readFileSync(path.join(folder, "out"), "utf8")).toBe("data");
  });

  it.each<[string, string, RegExp]>([
    [
      "headers without end",
      `HTTP/1.1 101 Switching Protocols\r\n${"X-More: and more\r\n".repeat(100_000)}`,
      /header/,
    ],
    [
      "a 101 for a protocol that was not offered",
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: v9.channel.k8s.io\r\n\r\n",
      /websocket|upgrade/i,
    ],
    ["no HTTP at all", "SSH-2.0-OpenSSH_9.2\r\n\r\n", /malformed HTTP/i],
  ])("%s: exit code 1, a sentence, and nothing is written", async (_what, bytes, words) => {
    api.removeAllListeners("upgrade");
    api.on("upgrade", (_request, socket) => {
      socket.on("error", () => {});
      socket.end(bytes);
    });
    const result = await sluice.run(["cp", "--retries", "0", "web:/data", `${folder}/out`]);
    expect(result.exitCode).toBe(1);
    expect(result.stderr).toMatch(/^(error|Unable to connect to the server): .*\n$/);
    expect(result.stderr).toMatch(words);
    expect(result.stderr.length).toBeLessThan(2_000);
    expect(readdirSync(folder)).toEqual(["kubeconfig"]);
  });

  it("a page of HTML of 50 KB in the place of an answer is cut", async () => {
    api.removeAllListeners("upgrade");
    api.on("upgrade", (_request, socket) => {
      const page = `<html>${"x".repeat(50_000)}</html>`;
      socket.end(
        `HTTP/1.1 403 Forbidden\r\nContent-Type: text/html\r\nContent-Length: ${page.length}\r\n\r\n${page}`,
      );
    });
    const result = await sluice.run(["cp", "--retries", "0", "web:/data", `${folder}/out`]);
    expect(result.exitCode).toBe(1);
    expect(result.stderr.length).toBeLessThan(2_000);
    expect(readdirSync(folder)).toEqual(["kubeconfig"]);
  });

  it("what a container says is shown without its control characters", async () => {
    const said = "tail: \x1b]0;owned\x07\x1b[2J\u009b31m no\nsuch file";
    answer = saying(onChannel(STDERR, said), onChannel(ERROR, exitStatus(1)));
    const { exitCode, stderr } = await sluice.run(["cp", "--retries", "0", "web:/data", `${folder}/out`]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("no\nsuch file");
    expect([...stderr].filter((character) => character !== "\n" && /\p{Cc}/u.test(character))).toEqual([]);
  });

  it.each([
    "",
    "kind file\nstat 4 1 1\npath ",
    "kind absent\npath data",
    "kind folder",
    "kind socket\npath /data",
    "kind file\npath /data",
    "kind file\nsize\npath /data",
    "kind file\nsize x\npath /data",
  ])("a first look answered with %j is a failure, not a path", async (text) => {
    inspected = text;
    answer = saying(data, afterwards, onChannel(ERROR, SUCCESS));
    writeFileSync(path.join(folder, "mine"), "data");
    for (const ends of [
      ["web:/data", `${folder}/out`],
      [`${folder}/mine`, "web:/data"],
    ]) {
      const { exitCode, stderr } = await sluice.run(["cp", ...ends]);
      expect(stderr).toMatch(/^error: the container's answer cannot be read: /);
      expect(exitCode).toBe(1);
    }
    expect(readdirSync(folder).sort()).toEqual(["kubeconfig", "mine"]);
  });

  it.each([
    "x",
    "g",
    "L",
    "K",
  ])("a header of type %s that says it is 5 GiB long ends the copy with a sentence", async (type) => {
    inspected = "kind folder\ntool tar\npath /data";
    const header = onChannel(STDOUT, tarHeader("long", type, 5 * 1024 ** 3).toString("latin1"));
    const rest = Array.from({ length: 40 }, () => onChannel(STDOUT, "\0".repeat(64 * 1024)));
    answer = saying(header, ...rest, onChannel(ERROR, SUCCESS));
    const { exitCode, stderr } = await sluice.run(["cp", "--retries", "0", "web:/data", `${folder}/out`]);
    expect(stderr).toBe("error: the container's archive cannot be read: a header is longer than 1 MiB\n");
    expect(exitCode).toBe(1);
    expect(readdirSync(folder)).toEqual(["kubeconfig"]);
  });

  it.each<[string, Buffer, number, RegExp]>([
    ["a folder's entry that states a size", tarHeader("sub/", "5", 1), 0, /^$/],
    [
      "a file's size below zero",
      Buffer.concat([
        tarHeader("x", "x", 11),
        Buffer.from("11 size=-1\n".padEnd(512, "\0")),
        tarHeader("f", "0", 0),
      ]),
      1,
      /^error: the container's archive cannot be read: an entry states a size of -1\n$/,
    ],
  ])("%s does not hang the copy", async (_what, entry, exitCode, stderr) => {
    inspected = "kind folder\ntool tar\npath /data";
    const archive = Buffer.concat([entry, Buffer.alloc(1024)]).toString("latin1");
    answer = saying(onChannel(STDOUT, archive), onChannel(ERROR, SUCCESS));
    const result = await sluice.run(["cp", "--retries", "0", "web:/data", `${folder}/out`], {
      timeoutMs: 20_000,
    });
    expect(result.exitCode).toBe(exitCode);
    expect(result.stderr).toMatch(stderr);
    expect(readdirSync(folder).filter((name) => name.includes("partial"))).toEqual([]);
  });

  it("writes through no link at its hidden names", async () => {
    const victim = path.join(folder, "victim");
    writeFileSync(victim, "mine");
    for (const name of [".out.sluice-partial", ".out.sluice-partial.of"])
      symlinkSync(victim, path.join(folder, name));
    answer = saying(data, afterwards, onChannel(ERROR, SUCCESS));
    expect(await sluice.run(["cp", "web:/data", `${folder}/out`])).toMatchObject({ exitCode: 0 });
    expect([readFileSync(victim, "utf8"), readFileSync(`${folder}/out`, "utf8")]).toEqual(["mine", "data"]);
  });

  it("files and folders get no more rights than the umask leaves", async () => {
    const before = process.umask(0o027);
    try {
      answer = saying(data, afterwards, onChannel(ERROR, SUCCESS));
      inspected = INSPECTED.replace("mode 644", "mode 777");
      expect((await sluice.run(["cp", "web:/data", `${folder}/out`])).exitCode).toBe(0);
      expect(statSync(`${folder}/out`).mode & 0o777).toBe(0o750);
      inspected = "kind folder\ntool tar\npath /data";
      const archive = [tarHeader("sub/", "5", 0), tarHeader("sub/f", "0", 0), Buffer.alloc(1024)];
      answer = saying(
        onChannel(STDOUT, Buffer.concat(archive).toString("latin1")),
        onChannel(ERROR, SUCCESS),
      );
      expect((await sluice.run(["cp", "web:/data", `${folder}/folder`])).exitCode).toBe(0);
      for (const name of ["", "sub", "sub/f"])
        expect(statSync(`${folder}/folder/${name}`).mode & 0o027).toBe(0);
      expect(statSync(`${folder}/folder/sub`).mode & 0o777).toBe(0o750);
    } finally {
      process.umask(before);
    }
  });
});

/** A header of ustar with every right; sizes past 8 GiB do not fit. */
function tarHeader(name: string, type: string, size: number): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write("0000777\0", 100);
  header.write(`${size.toString(8).padStart(11, "0")}\0`, 124);
  header.write("00000000000\0", 136);
  header.write("        ", 148);
  header.write(type, 156);
  header.write("ustar\x0000", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}
