import headless from "@xterm/headless";
import { afterAll, beforeAll, expect, it } from "vitest";
import { WebSocket } from "ws";
import type { SpdyStream } from "../../../protocols/spdy/index.ts";
import { eventually } from "../../support/eventually.ts";
import { GatewayFiles, TESTER_TOKEN, webOn } from "../../support/gateway-files.ts";
import { ScriptedKubelet } from "../../support/scripted-kubelet.ts";
import { type ServedGateway, serveGateway } from "../../support/served-gateway.ts";
import { bytesOf, cutAt, recordingOf } from "../../support/terminal-recordings.ts";
import { V5Client } from "../../support/v5-client.ts";

const SESSIONS = "/apis/sluice.dev/v1alpha1/namespaces/default/streamingsessions";
const headers = { Authorization: `Bearer ${TESTER_TOKEN}` };

const files = new GatewayFiles();
const stdouts: SpdyStream[] = [];
const sizes: string[] = [];
let typed = "";
const kubelet = new ScriptedKubelet({
  onData: (name, part) => {
    if (name.startsWith("stdin")) typed += Buffer.from(part).toString();
    if (name.startsWith("resize")) sizes.push(Buffer.from(part).toString());
  },
  onStream: (name, stream) => {
    if (name.startsWith("stdout")) stdouts.push(stream);
  },
});
let gateway: ServedGateway;
let first: ServedGateway | undefined;
let port = 0;
beforeAll(async () => {
  port = await kubelet.listen();
  files.configure(webOn(port));
  gateway = await serveGateway(files.configurationFile);
});
afterAll(async () => {
  await Promise.all([first?.stop(), gateway?.stop()]);
  await kubelet.close();
  files.remove();
});

/** A session with a terminal, and its node's side of what it prints. */
async function shell() {
  const { host } = new URL(gateway.ready.apiServerUrl);
  const query = "command=sh&stdin=true&stdout=true&tty=true";
  const client = new V5Client(host, query, "exec", headers);
  await client.opened;
  const stdout = await eventually("the node has its stream", () => stdouts.shift());
  const name = await eventually("it is the only one", async () => {
    const list = await fetch(`${gateway.ready.apiServerUrl}${SESSIONS}`, { headers });
    const { items } = (await list.json()) as { items: { metadata: { name: string } }[] };
    return items.length === 1 ? items[0]?.metadata.name : undefined;
  });
  return { client, stdout, name };
}

/** A viewer's terminal. */
class View {
  readonly terminal = new headless.Terminal({ scrollback: 0, allowProposedApi: true });
  readonly notes: string[] = [];

  /** Shows the stream until its end. `pause`: is awaited before it is read. */
  async follow(name: string, pause: Promise<void> = Promise.resolve()): Promise<void> {
    const { body } = await fetch(`${gateway.ready.apiServerUrl}${SESSIONS}/${name}/output`, { headers });
    // `fetch` cancels a body that nobody has locked once its Response is collected as garbage.
    const parts = body?.values() ?? [];
    await pause;
    const decoder = new TextDecoder();
    let rest = "";
    for await (const part of parts) {
      const lines = (rest + decoder.decode(part as Uint8Array, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) await this.#show(line);
    }
  }

  async #show(line: string): Promise<void> {
    if (!line.startsWith("[")) return;
    const [, code, text] = JSON.parse(line) as [number, string, string];
    const [cols = 0, rows = 0] = text.split("x").map(Number);
    if (code === "r") this.terminal.resize(cols, rows);
    else if (code === "m") this.notes.push(text);
    else await new Promise<void>((resolve) => this.terminal.write(text, resolve));
  }

  get lines(): readonly string[] {
    const { active } = this.terminal.buffer;
    return Array.from(
      { length: this.terminal.rows },
      (_, row) => active.getLine(row)?.translateToString(true) ?? "",
    );
  }
}

it("is what viewers begin with, and what follows leads to the owner's", async () => {
  const { client, stdout, name } = await shell();
  const parts = recordingOf("vim");
  const owner = new View();
  const views = [new View(), new View()];
  const followed: Promise<void>[] = [];
  const [before, behind] = cutAt(parts, Math.floor(bytesOf(parts) / 2) | 1);
  const printed = () => client.messages.reduce((sum, message) => sum + message.length - 1, 0);
  const play = async (shown: typeof parts): Promise<void> => {
    for (const part of shown) {
      if (part instanceof Uint8Array) {
        await new Promise<void>((resolve) => owner.terminal.write(part, resolve));
        const expected = printed() + part.length;
        stdout.write(part);
        await eventually("the client has it", () => printed() >= expected);
      } else {
        owner.terminal.resize(part.cols, part.rows);
        client.send(4, JSON.stringify({ Width: part.cols, Height: part.rows }));
        await eventually("the node has the size", () => sizes.at(-1)?.includes(`:${part.cols},`) === true);
      }
    }
  };
  await play(before);
  for (const view of views) followed.push(view.follow(name));
  await eventually("both see it", () => views.every(({ lines }) => String(lines) === String(owner.lines)));
  await play(behind);
  await eventually("both see the end", () =>
    views.every(({ lines }) => String(lines) === String(owner.lines)),
  );
  client.socket.terminate();
  await Promise.all(followed);
  expect(views.map(({ notes }) => notes)).toEqual([["the session is over"], ["the session is over"]]);
}, 60_000);

it("has the owner's sizes alone, whatever those of its joiners and viewers are", async () => {
  const { client, stdout, name } = await shell();
  const { host } = new URL(gateway.ready.apiServerUrl);
  const size = (cols: number, rows: number): string => JSON.stringify({ Width: cols, Height: rows });
  sizes.length = 0;
  client.send(4, size(100, 30));
  await eventually("the node has the owner's size", () => sizes.length === 1);
  const joiners = [0, 1].map(() => {
    const url = `ws://${host}${SESSIONS}/${name}/attach`;
    return new V5Client(new WebSocket(url, "v5.channel.k8s.io", { headers }));
  });
  const views = [new View(), new View()];
  views[1]?.terminal.resize(20, 5);
  const followed = views.map((view) => view.follow(name));
  await Promise.all(joiners.map(({ opened }) => opened));
  for (const [index, joiner] of joiners.entries()) {
    joiner.send(4, size(132 - index * 100, 43));
    joiner.send(0, `joiner-${index};`);
  }
  await eventually("the node has their input", () =>
    [0, 1].every((each) => typed.includes(`joiner-${each};`)),
  );
  client.send(4, size(90, 20));
  stdout.write(Buffer.from("\u001b[2J\u001b[H90 columns"));
  await eventually("the viewers see it", () => views.every(({ lines }) => lines[0] === "90 columns"));
  await eventually("the node has the owner's next size", () => sizes.length >= 2);
  expect(sizes.map((each) => JSON.parse(each))).toEqual([
    { Width: 100, Height: 30 },
    { Width: 90, Height: 20 },
  ]);
  expect(views.map(({ terminal: { cols, rows } }) => [cols, rows])).toEqual([
    [90, 20],
    [90, 20],
  ]);
  client.socket.terminate();
  await Promise.all([...followed, ...joiners.map(({ done }) => done)]);
}, 60_000);

it("comes afresh to a viewer that stood still in a flood, which holds up none", async () => {
  const { client, stdout, name } = await shell();
  let read = (): void => {};
  const view = new View();
  const slow = view.follow(name, new Promise((resolve) => (read = resolve)));
  const line = `${"flood é ".repeat(12)}\r\n`;
  const part = Buffer.from(line.repeat(600));
  const printed = () => client.messages.reduce((sum, message) => sum + message.length - 1, 0);
  // More than the sockets to the viewer hold.
  for (let count = 1; count <= 400; count += 1) {
    stdout.write(part);
    await eventually("the owner has it", () => printed() >= count * part.length);
  }
  stdout.write(Buffer.from("\u001b[2J\u001b[Hthe end"));
  read();
  await eventually("the viewer sees the end", () => view.lines[0] === "the end");
  client.socket.terminate();
  await slow;
  expect(view.notes).toContain("output is missing here");
  expect(view.notes.at(-1)).toBe("the session is over");
  expect(view.lines.slice(1)).toEqual(new Array(23).fill(""));
}, 120_000);

it("is not kept with currentScreen none: a viewer sees a note, and what comes from then on", async () => {
  first = gateway;
  const configuration = { sessions: { currentScreen: "none" } };
  files.configure({ ...webOn(port), configuration });
  gateway = await serveGateway(files.configurationFile);
  const { client, stdout, name } = await shell();
  stdout.write(Buffer.from("before"));
  await eventually("the owner has it", () => Buffer.concat(client.messages).includes("before"));
  const view = new View();
  const followed = view.follow(name);
  await eventually("the viewer is there", () => view.notes.length > 0);
  stdout.write(Buffer.from("after"));
  await eventually("the viewer sees it", () => view.lines[0] === "after");
  client.socket.terminate();
  await followed;
  expect(view.notes[0]).toBe("this gateway keeps no current screens: what comes from now on follows");
}, 60_000);
