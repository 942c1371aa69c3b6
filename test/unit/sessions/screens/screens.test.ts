import path from "node:path";
import { pathToFileURL } from "node:url";
import headless from "@xterm/headless";
import { describe, expect, it, vi } from "vitest";
import { RESIZE, type SessionObserver, STDOUT } from "../../../../src/sessions/observers/session-observer.ts";
import { Screens } from "../../../../src/sessions/screens/screens.ts";
import { serializeScreen } from "../../../../src/sessions/screens/serialize-screen.ts";
import { TerminalTail } from "../../../../src/sessions/screens/terminal-tail.ts";
import type { RunningSession } from "../../../../src/sessions/sessions.ts";
import { RECORDED_PROGRAMS, recordingOf } from "../../../support/terminal-recordings.ts";

// The bounds under test.
const MAX_SCREENED_SESSIONS = 1_000;
const MAX_EMULATED_SCREENS = 128;
const MAX_SCREEN_CELLS = 65_536;
const MAX_SCREEN_AHEAD_BYTES = 4 * 1024 * 1024;
const MAX_SCREEN_TAIL = 64 * 1024;

const program = pathToFileURL(path.resolve("dist/src/sessions/screens/screen-thread.js"));

/** A session with a terminal that a test prints through. */
class TerminalSession {
  readonly observers = new Set<SessionObserver>();
  readonly id: string;

  constructor(screens: Screens, id = "a", tty = true) {
    this.id = id;
    screens.began({
      info: { id, details: { tty } },
      observe: (observer: SessionObserver) => {
        this.observers.add(observer);
        return () => this.observers.delete(observer);
      },
    } as unknown as RunningSession);
  }

  print(bytes: string | Uint8Array): void {
    for (const observer of this.observers) observer.onData?.(STDOUT, "node", Buffer.from(bytes));
  }

  resize(cols: number, rows: number): void {
    const size = Buffer.from(JSON.stringify({ Width: cols, Height: rows }));
    for (const observer of this.observers) observer.onData?.(RESIZE, "client", size);
  }

  end(): void {
    for (const observer of [...this.observers]) void observer.onEnd?.({} as never);
  }
}

/** What a terminal shows that sees it all. */
async function shownBy(outputs: readonly (string | Uint8Array)[], cols = 80, rows = 24): Promise<string> {
  const terminal = new headless.Terminal({ scrollback: 0, allowProposedApi: true, cols, rows });
  for (const output of outputs) await new Promise<void>((resolve) => terminal.write(output, resolve));
  return serializeScreen(terminal);
}

describe("the current screen", () => {
  it.each(RECORDED_PROGRAMS)("of %s is what a terminal shows that saw it all", async (name) => {
    const screens = new Screens(program);
    const session = new TerminalSession(screens);
    const terminal = new headless.Terminal({ scrollback: 0, allowProposedApi: true });
    for (const part of recordingOf(name)) {
      if (part instanceof Uint8Array) {
        await new Promise<void>((resolve) => terminal.write(part, resolve));
        session.print(part);
      } else {
        terminal.resize(part.cols, part.rows);
        session.resize(part.cols, part.rows);
      }
    }
    const { cols, rows } = terminal;
    expect(await screens.screenOf("a")).toEqual({
      text: serializeScreen(terminal),
      cols,
      rows,
      isComplete: true,
    });
    session.end();
    expect([session.observers.size, await screens.screenOf("a")]).toEqual([0, undefined]);
  });

  it("is exact also behind more output than is kept, at the pace of a shell", async () => {
    const screens = new Screens(program);
    const session = new TerminalSession(screens);
    const drawn = "\u001b[?1049h\u001b[3;20r\u001b[1;1Htitle\u001b[24;1Hfoot\u001b[3;1H";
    session.print(drawn);
    const lines = Array.from({ length: 20_000 }, (_, index) => `line ${index} é\r\n`);
    for (const line of lines) session.print(line);
    const screen = await screens.screenOf("a");
    expect(screen).toMatchObject({ text: await shownBy([drawn + lines.join("")]), isComplete: true });
    session.end();
  });

  it("may be incomplete behind a flood, says so, and is that of the latest output", async () => {
    const screens = new Screens(program);
    const session = new TerminalSession(screens);
    session.print("\u001b[31mred");
    const lines = Buffer.from("\u001b[0mflood\r\n".repeat(100_000));
    for (let at = 0; at < 10; at += 1) session.print(lines);
    session.print("\u001b[2J\u001b[Hend");
    const screen = await screens.screenOf("a");
    expect(screen?.isComplete).toBe(false);
    expect(screen?.text).toBe(await shownBy(["end"]));
    session.end();
  });

  it("has no text for a sequence that is cut, which the stream completes", async () => {
    const screens = new Screens(program);
    const session = new TerminalSession(screens);
    session.print("a\u001b[3");
    expect((await screens.screenOf("a"))?.text).toBe(`${await shownBy(["a"])}\u001b[3`);
    session.print(Buffer.concat([Buffer.from("1mb"), Buffer.from("漢").subarray(0, 2)]));
    expect((await screens.screenOf("a"))?.text).toBe(await shownBy(["a\u001b[31mb"]));
    expect([...screens.openCharacterOf("a")]).toEqual([...Buffer.from("漢").subarray(0, 2)]);
    session.end();
  });

  it("is of sessions with a terminal, so many, and of terminals up to a size", async () => {
    const screens = new Screens(program);
    expect(new TerminalSession(screens, "pipe", false).observers.size).toBe(0);
    const session = new TerminalSession(screens);
    session.resize(MAX_SCREEN_CELLS / 2, 3);
    session.print("x");
    expect(await screens.screenOf("a")).toBeUndefined();
    session.resize(100, 30);
    expect(await screens.screenOf("a")).toMatchObject({ cols: 100, rows: 30, isComplete: false });
    const more = Array.from(
      { length: MAX_SCREENED_SESSIONS },
      (_, at) => new TerminalSession(screens, `s${at}`),
    );
    expect(more.filter(({ observers }) => observers.size === 1)).toHaveLength(MAX_SCREENED_SESSIONS - 1);
    for (const each of [session, ...more]) each.end();
  });

  it("of one more terminal than are emulated is drawn, and the longest emulated one gives way", async () => {
    const screens = new Screens(program);
    const sessions = Array.from(
      { length: MAX_EMULATED_SCREENS + 1 },
      (_, at) => new TerminalSession(screens, `${at}`),
    );
    for (const session of sessions) {
      session.print(session.id);
      expect((await screens.screenOf(session.id))?.isComplete).toBe(true);
    }
    expect((await screens.screenOf("0"))?.isComplete).toBe(false);
    for (const session of sessions) session.end();
  });

  it("costs no more memory behind a thread that stands still", async () => {
    // It counts what comes, and says that it emulated none of it.
    const code = `import { parentPort } from "node:worker_threads";
let bytes = 0;
parentPort.on("message", ({ id, parts, wants }) => {
  for (const part of parts ?? []) bytes += part.length;
  if (wants) parentPort.postMessage({ id, bytes: 0, isWanted: true, screen: { text: String(bytes), cols: 1, rows: 1 } });
});`;
    const screens = new Screens(new URL(`data:text/javascript,${encodeURIComponent(code)}`));
    const session = new TerminalSession(screens);
    const clock = vi.spyOn(performance, "now");
    const part = Buffer.alloc(MAX_SCREEN_TAIL, "x");
    for (let seconds = 1; seconds <= 200; seconds += 1) {
      clock.mockReturnValue(1e12 + seconds * 1_000);
      session.print(part);
    }
    clock.mockRestore();
    const screen = await screens.screenOf("a");
    expect(Number(screen?.text)).toBeGreaterThan(MAX_SCREEN_AHEAD_BYTES / 2);
    expect(Number(screen?.text)).toBeLessThanOrEqual(MAX_SCREEN_AHEAD_BYTES + MAX_SCREEN_TAIL);
    session.end();
  });

  it("is not known without the package, or if the thread fails, and nothing waits", async () => {
    const code = `import { parentPort } from "node:worker_threads"; parentPort.postMessage({ missing: "x" });`;
    const missing = new Screens(new URL(`data:text/javascript,${encodeURIComponent(code)}`));
    const session = new TerminalSession(missing);
    session.print("x");
    expect([await missing.screenOf("a"), missing.isMissing, session.observers.size]).toEqual([
      undefined,
      true,
      0,
    ]);
    expect(new TerminalSession(missing, "b").observers.size).toBe(0);
    const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
    const failing = new Screens(
      new URL(`data:text/javascript,${encodeURIComponent("throw new Error('no')")}`),
    );
    const other = new TerminalSession(failing);
    other.print("x");
    expect([await failing.screenOf("a"), failing.isMissing, warned.mock.calls.length]).toEqual([
      undefined,
      false,
      1,
    ]);
    other.end();
    warned.mockRestore();
  });
});

describe("the kept output", () => {
  const tailOf = (isSpilled: () => boolean = () => false) => new TerminalTail(isSpilled, () => {});
  const print = (tail: TerminalTail, text: string) => tail.onData(STDOUT, "node", Buffer.from(text));

  it("is bounded, and begins with a line or a sequence when its oldest is dropped", () => {
    const tail = tailOf();
    for (let at = 0; at < 10_000; at += 1) print(tail, `\u001b[3${at % 8}mline ${at}\r\n`);
    expect(tail.length).toBeLessThanOrEqual(MAX_SCREEN_TAIL);
    const { parts, isCut } = tail.take();
    const text = Buffer.concat(parts as Uint8Array[]).toString();
    expect([isCut, ["\n", "\u001b"].includes(text[0] ?? ""), text.endsWith("line 9999\r\n")]).toEqual([
      true,
      true,
      true,
    ]);
    expect([tail.length, tail.take()]).toEqual([0, { parts: [], isCut: false }]);
  });

  it("has sizes where they changed, and few of them", () => {
    const tail = tailOf();
    for (let width = 1; width <= 1_000; width += 1) {
      print(tail, "x");
      tail.onData(RESIZE, "client", Buffer.from(JSON.stringify({ Width: width, Height: 1 })));
    }
    const { parts } = tail.take();
    expect(parts.length).toBeLessThanOrEqual(129);
    expect([parts[0], parts[1], parts.at(-1)]).toEqual([
      Uint8Array.of(120),
      { cols: 1, rows: 1 },
      { cols: 1_000, rows: 1 },
    ]);
  });

  it.each(["", "a", "é", "漢", "😀"])("ends in the middle of %j wherever it is cut", (character) => {
    const bytes = Buffer.from(character);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const tail = tailOf();
      tail.onData(STDOUT, "node", Buffer.concat([Buffer.from("ab"), bytes.subarray(0, cut)]));
      const open = cut === bytes.length ? [] : [...bytes.subarray(0, cut)];
      expect([...tail.openCharacter]).toEqual(open);
      tail.take();
      expect([...tail.openCharacter]).toEqual(open);
    }
  });
});
