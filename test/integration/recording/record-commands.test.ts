import { afterEach, describe, expect, it } from "vitest";
import {
  attachPath,
  type CommandPath,
  type Executor,
  execPath,
  SpdyExecutor,
  type Target,
  type TerminalSize,
  WebSocketExecutor,
} from "../../../packages/client/src/index.ts";
import { play } from "../../support/recording/played.ts";
import { RecordedGateway, type RecordedGatewayOptions } from "../../support/recording/recorded-gateway.ts";
import { websocketOnly } from "../../support/websocket-only.ts";

let gateway: RecordedGateway | undefined;
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
});

type Client = (target: Target, path: CommandPath) => Executor;
const V5: Client = (target, path) => new WebSocketExecutor(target, path);
const V4: Client = (target, path) => new WebSocketExecutor(target, path, {}, ["v4.channel.k8s.io"]);
const SPDY: Client = (target, path) => new SpdyExecutor(target, path);

interface Way {
  readonly way: string;
  readonly client: Client;
  readonly plan: string;
  readonly protocol: string;
  readonly options: RecordedGatewayOptions;
}

const v5 = "v5.channel.k8s.io";
const v4 = "v4.channel.k8s.io";
const WAYS: readonly Way[] = [
  { way: "WebSocket v5, translated", client: V5, plan: "translate", protocol: v5, options: {} },
  {
    way: "WebSocket v5, passed through",
    client: V5,
    plan: "pass-through",
    protocol: v5,
    options: { declaresWebSockets: true },
  },
  { way: "WebSocket v4, passed through", client: V4, plan: "pass-through", protocol: v4, options: {} },
  { way: "SPDY, passed through", client: SPDY, plan: "pass-through", protocol: v4, options: {} },
  {
    way: "SPDY, bridged",
    client: SPDY,
    plan: "bridge",
    protocol: v4,
    options: { declaresWebSockets: true, streaming: websocketOnly },
  },
  {
    way: "WebSocket v4, bridged",
    client: V4,
    plan: "bridge",
    protocol: v4,
    options: { declaresWebSockets: true, streaming: websocketOnly },
  },
];

const POD = { namespace: "default", pod: "web", container: "main" };

class Sink {
  readonly parts: Buffer[] = [];
  takePart(part: Uint8Array): undefined {
    this.parts.push(Buffer.from(part));
  }
  get bytes(): Buffer {
    return Buffer.concat(this.parts);
  }
}

async function* once(size: TerminalSize): AsyncGenerator<TerminalSize> {
  yield size;
}

describe.each(WAYS)("$way", ({ client, plan, protocol, options }) => {
  it("exec: both outputs, the exit code and the facts", async () => {
    gateway = await RecordedGateway.start(options);
    const [stdout, stderr] = [new Sink(), new Sink()];
    const script = "printf 'h\\303\\244 \\377\\376'; echo to-stderr >&2; echo end; exit 7";
    const command = ["sh", "-c", script];
    const end = await client(gateway.target, execPath(POD, command)).stream({ stdout, stderr });
    expect(end.exitCode).toBe(7);
    const recorded = play(await gateway.recording());
    expect(recorded.stdout).toEqual(stdout.bytes);
    expect(recorded.stderr).toEqual(stderr.bytes);
    expect(recorded.of("x")).toEqual(["7"]);
    expect(recorded.header).toMatchObject({
      version: 3,
      term: { cols: 80, rows: 24 },
      sluice: { ...POD, subresource: "exec", user: "tester", command, tty: false, plan, protocol },
    });
  });

  it("exec -i: what the command answers, and nothing of what was sent", async () => {
    gateway = await RecordedGateway.start(options);
    const stdout = new Sink();
    async function* input() {
      yield Buffer.from("secret-input\n");
    }
    const path = execPath(POD, ["sh", "-c", "read line; echo got $line | wc -c"]);
    const end = await client(gateway.target, path).stream({ stdin: input(), stdout });
    expect([end.exitCode, stdout.bytes.toString()]).toEqual([0, "17\n"]);
    const text = await gateway.recording();
    expect(play(text).stdout).toEqual(stdout.bytes);
    expect(text).not.toContain("secret-input");
  });

  it("exec -it: the terminal's output and size", async () => {
    gateway = await RecordedGateway.start(options);
    const stdout = new Sink();
    async function* input() {
      // A size may arrive after the first line.
      const sized = "until stty size | grep -q '^50 132'; do sleep 0.02; done; printf 's%s\\n' ized";
      yield Buffer.from(`${sized}; read -s word; printf 'r%s\\n' ead; printf %s "$word" | wc -c; exit 3\n`);
      await expect.poll(() => stdout.bytes.toString()).toContain("sized");
      yield Buffer.from("hunter2-hunter2\n");
      await expect.poll(() => stdout.bytes.toString()).toContain("read\r\n15");
    }
    const path = execPath(POD, ["bash", "--norc"]);
    const size = { width: 132, height: 50 };
    const streams = { stdin: input(), stdout, tty: true, terminalSizes: once(size) };
    const end = await client(gateway.target, path).stream(streams);
    expect(end.exitCode).toBe(3);
    const text = await gateway.recording();
    const recorded = play(text);
    expect(recorded.stdout).toEqual(stdout.bytes);
    const sizes = [`${recorded.header.term.cols}x${recorded.header.term.rows}`, ...recorded.of("r")];
    expect(sizes.at(-1)).toBe("132x50");
    expect(text).not.toContain("hunter2");
  });

  it("attach: what the container writes", async () => {
    gateway = await RecordedGateway.start(options);
    const stdout = new Sink();
    const abort = new AbortController();
    async function* input() {
      yield Buffer.from("said to cat\n");
      await expect.poll(() => stdout.bytes.toString()).toBe("said to cat\n");
      abort.abort();
    }
    const session = client(gateway.target, attachPath(POD)).stream({
      stdin: input(),
      stdout,
      signal: abort.signal,
    });
    await expect(session).rejects.toThrow();
    const recorded = play(await gateway.recording());
    expect(recorded.stdout).toEqual(stdout.bytes);
    expect(recorded.of("x")).toEqual([]);
    expect(recorded.of("m")).toEqual(["ended: client-gone"]);
    expect(recorded.header).toMatchObject({ sluice: { subresource: "attach", command: [] } });
  });
});
