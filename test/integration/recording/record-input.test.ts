import { spawnSync } from "node:child_process";
import { afterEach, describe, expect, it } from "vitest";
import { execPath, WebSocketExecutor } from "../../../packages/client/src/index.ts";
import { play } from "../../support/recording/played.ts";
import { RecordedGateway } from "../../support/recording/recorded-gateway.ts";

let gateway: RecordedGateway | undefined;
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
});

const SECRET = "correct-horse-9";
const PASSWORD_OF_PYTHON = "python3 -c 'import getpass; getpass.getpass(); print(\"taken\")'";

/** Programs that ask for a password, and what they say afterwards. */
const PROMPTS = [
  {
    program: "read -s",
    line: "read -s -p 'Password: ' word; printf 'ta%s\\n' ken",
    prompt: "Password: ",
    after: "taken",
  },
  {
    program: "stty -echo, as passwd and sudo do",
    line: "stty -echo; printf 'New pass%s' 'word: '; read word; stty echo; printf 'ta%s\\n' ken",
    prompt: "New password: ",
    after: "taken",
  },
  {
    program: "a prompt that shows stars",
    line: "printf 'Pass%s' 'word: '; while IFS= read -rsn1 key && [ -n \"$key\" ]; do printf '*'; done; printf 'ta%s\\n' ken",
    prompt: "Password: ",
    after: "taken",
  },
  { program: "getpass of Python", line: PASSWORD_OF_PYTHON, prompt: "Password: ", after: "taken\r\n" },
  {
    program: "openssl",
    line: "openssl genrsa -aes128 -out /dev/null 2048; printf 'sta%s\\n' tus",
    prompt: "Enter PEM pass phrase:",
    after: "status",
    isAskedTwice: true,
  },
];

class Screen {
  text = "";
  #seen = 0;
  takePart(part: Uint8Array): undefined {
    this.text += Buffer.from(part).toString();
  }
  /** Waits for text that comes after what was waited for before. */
  async shows(text: string): Promise<void> {
    await expect.poll(() => this.text.indexOf(text, this.#seen), { timeout: 20_000 }).toBeGreaterThan(-1);
    this.#seen = this.text.indexOf(text, this.#seen) + text.length;
  }
}

/** A shell in a terminal, typed into by `type`; returns its recording. */
async function record(
  options: { readonly record: "output" | "all"; readonly declaresWebSockets: boolean },
  type: (screen: Screen) => AsyncGenerator<string>,
): Promise<string> {
  const { record, declaresWebSockets } = options;
  const recording = { rules: [{ name: "all", record }] };
  gateway = await RecordedGateway.start({ declaresWebSockets, recording });
  const screen = new Screen();
  async function* stdin() {
    for await (const text of type(screen)) yield Buffer.from(text);
  }
  const command = ["env", "PS1=ready> ", "bash", "--norc"];
  const path = execPath({ namespace: "default", pod: "web", container: "main" }, command);
  await new WebSocketExecutor(gateway.target, path).stream({ stdin: stdin(), stdout: screen, tty: true });
  return await gateway.recording();
}

const WAYS = [
  { record: "output", declaresWebSockets: false },
  { record: "all", declaresWebSockets: false },
  { record: "all", declaresWebSockets: true },
] as const;

/** The system's own programs. Their second question gets a wrong answer or none, so they change nothing. */
const SYSTEM_PROGRAMS = [
  { program: "passwd", line: "passwd", prompt: "ew password: ", last: `${SECRET}-other\r` },
  {
    program: "sudo",
    line: "runuser -u nobody -- sudo -k true",
    prompt: "assword for nobody: ",
    last: "\u0003",
  },
];
const isRoot = process.getuid?.() === 0;
const isInstalled = (program: string): boolean => spawnSync("which", [program]).status === 0;

describe.each(SYSTEM_PROGRAMS)("$program itself", ({ program, line, prompt, last }) => {
  const obstacle = isRoot ? (isInstalled(program) ? "" : `${program} is not installed`) : "not root";
  const name = `leaves no password in the recording${obstacle && ` (${obstacle})`}`;
  it.skipIf(obstacle !== "").each(WAYS)(`${name}: $record, $declaresWebSockets`, async (options) => {
    const text = await record(options, async function* (screen) {
      await screen.shows("ready> ");
      yield `${line}\r`;
      await screen.shows(prompt);
      for (const key of SECRET) yield key;
      yield "\r";
      await screen.shows(prompt);
      for (const key of last) yield key;
      await screen.shows("ready> ");
      yield "echo se''en\r";
      await screen.shows("seen");
      yield "exit\r";
    });
    expect(text).toContain(prompt);
    expect(text).not.toContain(SECRET);
    expect(play(text).stdout.includes(SECRET)).toBe(false);
    if (options.record === "all") expect(play(text).of("i").join("")).toContain("echo se''en");
  });
});

describe.each(WAYS)("record: $record, node with WebSockets: $declaresWebSockets", (options) => {
  it("no password of a prompt is in the recording", async () => {
    const text = await record(options, async function* (screen) {
      await screen.shows("ready> ");
      for (const { line, prompt, after, isAskedTwice = false } of PROMPTS) {
        yield `${line}\r`;
        for (const round of isAskedTwice ? ["", "Verifying - "] : [""]) {
          await screen.shows(round + prompt);
          for (const key of SECRET) yield key;
          yield "\r";
        }
        await screen.shows(after);
        await screen.shows("ready> ");
      }
      yield "exit\r";
    });
    expect(text).not.toContain(SECRET);
    const recorded = play(text);
    // Nor in pieces: what was recorded as input are lines that the terminal showed.
    const lines = recorded.input.split("\r").filter((line) => line !== "");
    if (options.record === "output") expect(lines).toEqual([]);
    else expect(lines.every((line) => recorded.shown.includes(line.slice(-20)))).toBe(true);
    for (const line of lines) expect([...PROMPTS.map((each) => each.line), "exit"]).toContain(line);
  });
});

it("record: all records echoed lines in order, and marks that others were not echoed", async () => {
  const text = await record({ record: "all", declaresWebSockets: false }, async function* (screen) {
    await screen.shows("ready> ");
    for (const key of "echo on\x7fne") yield key;
    yield "\r";
    await screen.shows("ready> ");
    yield "read -s -p Password: word\r";
    await screen.shows("word");
    await screen.shows("Password:");
    yield `${SECRET}\r`;
    await screen.shows("ready> ");
    yield "exit 3\r";
  });
  const { input, of, header } = play(text);
  expect(input).toBe("echo one\rread -s -p Password: word\rexit 3\r");
  expect(of("m")).toEqual(["input that the terminal did not echo as it was typed"]);
  expect(of("x")).toEqual(["3"]);
  expect(header).toMatchObject({ sluice: { record: "all" } });
});
