import type { IBufferLine } from "@xterm/headless";
import headless from "@xterm/headless";
import { describe, expect, it } from "vitest";
import { OpenSequence } from "../../../../src/sessions/screens/open-sequence.ts";
import type { TerminalPart } from "../../../../src/sessions/screens/screen-messages.ts";
import { serializeScreen } from "../../../../src/sessions/screens/serialize-screen.ts";
import { bytesOf, cutAt, RECORDED_PROGRAMS, recordingOf } from "../../../support/terminal-recordings.ts";

class Viewer {
  readonly terminal = new headless.Terminal({ scrollback: 0, allowProposedApi: true });

  async show(parts: readonly (TerminalPart | string)[]): Promise<this> {
    for (const part of parts) {
      if (typeof part === "string" || part instanceof Uint8Array)
        await new Promise<void>((resolve) => this.terminal.write(part, resolve));
      else this.terminal.resize(part.cols, part.rows);
    }
    return this;
  }

  get screen(): string {
    return serializeScreen(this.terminal);
  }

  /** All that a program's further output may depend on. */
  get state(): object {
    const { terminal } = this;
    const { active } = terminal.buffer;
    const rows = Array.from({ length: terminal.rows }, (_, row) => rowOf(active.getLine(row), terminal.cols));
    const { _bufferService, _charsetService, coreService } = (terminal as never as { _core: Core })._core;
    const { scrollTop, scrollBottom, savedX, savedY } = _bufferService.buffer;
    const { synchronizedOutputMode: _, ...modes } = terminal.modes;
    return {
      rows,
      cursor: [active.cursorX, active.cursorY],
      kind: active.type,
      region: [scrollTop, scrollBottom],
      saved: [savedX, savedY],
      isHidden: coreService.isCursorHidden,
      drawsLines: _charsetService.charset?.["`"] === "◆",
      modes,
    };
  }
}

interface Core {
  readonly _bufferService: { readonly buffer: Record<string, number> };
  readonly _charsetService: { readonly charset?: Record<string, string> };
  readonly coreService: { readonly isCursorHidden: boolean };
}

/** Each text with its colours and attributes. */
function rowOf(line: IBufferLine | undefined, cols: number): string {
  let row = "";
  let last = "";
  for (let column = 0; column < cols; column += 1) {
    const cell = line?.getCell(column);
    if (cell === undefined) continue;
    const background = [cell.getBgColorMode(), cell.getBgColor(), cell.isInverse()];
    const foreground = [
      cell.getFgColorMode(),
      cell.getFgColor(),
      cell.isBold(),
      cell.isUnderline(),
      cell.isDim(),
    ];
    const text = cell.getWidth() === 0 ? "" : cell.getChars() || " ";
    // Blanks have no foreground.
    const style = (text === " " ? background : [...background, ...foreground]).map(Number).join(",");
    if (style !== last && !(text === " " && last.startsWith(style))) row += `{${style}}`;
    last = style;
    row += text;
  }
  return row;
}

/** What a viewer sees that came after so many bytes. */
async function lateViewer(parts: readonly TerminalPart[], bytes: number): Promise<Viewer> {
  const [before, behind] = cutAt(parts, bytes);
  const owner = await new Viewer().show(before);
  const open = new OpenSequence();
  const decoder = new TextDecoder();
  for (const part of before) {
    if (!(part instanceof Uint8Array)) continue;
    open.push(part);
    decoder.decode(part, { stream: true });
  }
  const begun = new TextDecoder().decode(open.bytes, { stream: true });
  const { cols, rows } = owner.terminal;
  // What the viewer's terminal showed before is gone.
  const viewer = await new Viewer().show(["before\u001b[?1049h\u001b[2;5rother\u001b[?6h", { cols, rows }]);
  await viewer.show([owner.screen]);
  expect(viewer.state).toEqual(owner.state);
  await viewer.show([begun]);
  const texts = behind.map((part) =>
    part instanceof Uint8Array ? decoder.decode(part, { stream: true }) : part,
  );
  return await viewer.show(texts);
}

describe.each(RECORDED_PROGRAMS)("the screen of %s", (program) => {
  const parts = recordingOf(program);

  it("goes on like the owner's from wherever it is cut", async () => {
    const owner = await new Viewer().show(parts);
    const bytes = bytesOf(parts);
    // Odd steps, so that characters and sequences are cut, too.
    for (let at = 0; at < bytes; at += Math.floor(bytes / 20) | 1) {
      const viewer = await lateViewer(parts, at);
      expect([at, viewer.state]).toEqual([at, owner.state]);
    }
  });
});

it.each([
  ["an alternate screen under colours", "plain\u001b[31;44m\u001b[?1049h\u001b[0mfull"],
  ["a region that scrolls", "\u001b[3;10r\u001b[10;1Hlast"],
  ["an origin in a region", "\u001b[3;10r\u001b[?6h\u001b[2;2Hhere"],
  ["a saved cursor", "\u001b[5;6H\u001b7\u001b[1;1Hx"],
  ["lines", "\u001b(0lqk"],
  ["a hidden cursor and modes", "\u001b[?25l\u001b[?1h\u001b[?2004h\u001b[?1002h\u001b[4h\u001b[?7l"],
  ["a line that is full", "x".repeat(80)],
  ["wide characters at the edge", `${"x".repeat(79)}漢`],
])("%s is as it was, and goes on so", async (_what, output) => {
  const more = "\u001b[Kmore\r\n\n\n\n\n\n\n\n\u001b8again";
  const parts = [Buffer.from(output), Buffer.from(more)];
  const owner = await new Viewer().show(parts);
  const viewer = await lateViewer(parts, Buffer.byteLength(output));
  expect(viewer.state).toEqual(owner.state);
});
