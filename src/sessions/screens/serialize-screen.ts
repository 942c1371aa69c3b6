import type { IBuffer, IBufferCell, IBufferLine, Terminal } from "@xterm/headless";

/** Resets what an earlier screen changed in a viewer's terminal, and clears it. */
const CLEARED =
  "\u001b[0m\u001b[?1049l\u001b[r\u001b[?6l\u001b[4l\u001b[?7h\u001b[?45l\u001b(B\u001b[?25h" +
  "\u001b[?1l\u001b[?66l\u001b[?2004l\u001b[?1004l\u001b[?1000l\u001b[?1006l\u001b[H\u001b7\u001b[2J";

/** Colours and attributes of a cell, or of text printed next. */
type Style = Pick<
  IBufferCell,
  | "getFgColor"
  | "getBgColor"
  | "getFgColorMode"
  | "getBgColorMode"
  | "isFgRGB"
  | "isBgRGB"
  | "isFgPalette"
  | "isBgPalette"
  | "isBold"
  | "isDim"
  | "isItalic"
  | "isUnderline"
  | "isBlink"
  | "isInverse"
  | "isInvisible"
  | "isStrikethrough"
  | "isOverline"
>;

interface InnerBuffer {
  readonly scrollTop: number;
  readonly scrollBottom: number;
  readonly savedX: number;
  readonly savedY: number;
  readonly savedCurAttrData: Style;
}

/** Internals that the package does not export; its version is pinned. */
interface Internals {
  readonly _core: {
    readonly coreService: { readonly isCursorHidden: boolean };
    readonly _charsetService: { readonly charset?: Readonly<Record<string, string>> | undefined };
    readonly _inputHandler: { readonly _curAttrData: Style };
    readonly _bufferService: {
      readonly buffers: { readonly normal: InnerBuffer; readonly active: InnerBuffer };
    };
  };
}

/**
 * The output that makes any terminal of this size show the same screen and continue in the same
 * state. Left out: tab stops, a character set that SO selects, underlines that are not plain.
 */
export function serializeScreen(terminal: Terminal): string {
  const { normal, active } = terminal.buffer;
  const { _core: core } = terminal as unknown as Internals;
  const { buffers } = core._bufferService;
  let text = CLEARED + rowsOf(normal, terminal);
  if (active.type === "alternate") {
    const { cursorX, cursorY } = normal;
    // The switch to the alternate screen saves the cursor with its colours.
    text += to(cursorX, cursorY) + sgrOf(buffers.normal.savedCurAttrData);
    text += `\u001b[?1049h\u001b[0m\u001b[2J${rowsOf(active, terminal)}`;
  }
  const { savedX, savedY, savedCurAttrData } = buffers.active;
  if (savedX > 0 || savedY > 0) text += `${to(savedX, savedY)}${sgrOf(savedCurAttrData)}\u001b7`;
  const { scrollTop, scrollBottom } = buffers.active;
  if (scrollTop > 0 || scrollBottom < terminal.rows - 1)
    text += `\u001b[${scrollTop + 1};${scrollBottom + 1}r`;
  if (terminal.modes.originMode) text += "\u001b[?6h";
  text += cursorOf(active, terminal, terminal.modes.originMode ? scrollTop : 0);
  return text + sgrOf(core._inputHandler._curAttrData) + modesOf(terminal, core);
}

/** `top`: the row from which rows are counted. */
function cursorOf(buffer: IBuffer, { cols }: Terminal, top: number): string {
  const { cursorX, cursorY } = buffer;
  if (cursorX < cols) return to(cursorX, cursorY - top);
  // The cursor is after the last column, where the next character wraps. Only printing moves it
  // there.
  const line = buffer.getLine(buffer.baseY + cursorY);
  const isWide = line?.getCell(cols - 1)?.getWidth() === 0;
  const column = isWide ? cols - 2 : cols - 1;
  const cell = line?.getCell(column);
  if (cell === undefined) return "";
  return to(column, cursorY - top) + sgrOf(cell) + (cell.getChars() || " ");
}

function rowsOf(buffer: IBuffer, { rows, cols }: Terminal): string {
  let text = "";
  let isJoined = false;
  for (let row = 0; row < rows; row += 1) {
    const line = buffer.getLine(buffer.baseY + row);
    if (line === undefined) continue;
    const content = rowOf(line, cols);
    text += isJoined || content.text === "" ? content.text : to(0, row) + content.text;
    // A wrapped line stays one line, so that the terminal can wrap it anew when its size changes.
    const next = buffer.getLine(buffer.baseY + row + 1);
    const nextWidth = next?.getCell(0)?.getWidth() ?? 1;
    isJoined =
      next?.isWrapped === true && content.end > cols - nextWidth && next.getCell(0)?.getChars() !== "";
  }
  return text;
}

/** `end`: the column after the last character. */
function rowOf(line: IBufferLine, cols: number): { readonly text: string; readonly end: number } {
  let text = "";
  let style = "";
  let end = 0;
  let at = 0;
  for (let column = 0; column < cols; ) {
    const cell = line.getCell(column);
    if (cell === undefined) break;
    const cellStyle = sgrOf(cell);
    const characters = cell.getChars();
    const isBlank = characters === "";
    if (!isBlank || !cell.isBgDefault()) {
      if (at < column) text += `\u001b[${column - at}C`;
      if (cellStyle !== style) text += cellStyle;
      style = cellStyle;
      text += isBlank ? "\u001b[X" : characters;
      at = isBlank ? column : column + Math.max(1, cell.getWidth());
      if (!isBlank) end = at;
    }
    column += Math.max(1, cell.getWidth());
  }
  return { text: text === "" ? "" : `${text}\u001b[0m`, end };
}

function to(column: number, row: number): string {
  return `\u001b[${row + 1};${column + 1}H`;
}

function sgrOf(style: Style): string {
  const codes: (string | number)[] = [0];
  const flags = [
    [style.isBold(), 1],
    [style.isDim(), 2],
    [style.isItalic(), 3],
    [style.isUnderline(), 4],
    [style.isBlink(), 5],
    [style.isInverse(), 7],
    [style.isInvisible(), 8],
    [style.isStrikethrough(), 9],
    [style.isOverline(), 53],
  ];
  for (const [isSet, code] of flags) if (isSet) codes.push(code as number);
  if (style.isFgRGB()) codes.push(`38;2;${rgb(style.getFgColor())}`);
  else if (style.isFgPalette()) codes.push(paletteOf(30, style.getFgColor(), style.getFgColorMode()));
  if (style.isBgRGB()) codes.push(`48;2;${rgb(style.getBgColor())}`);
  else if (style.isBgPalette()) codes.push(paletteOf(40, style.getBgColor(), style.getBgColorMode()));
  return `\u001b[${codes.join(";")}m`;
}

/** The package's mark for colours named among the first 16: with them bold may mean bright. */
const AMONG_16 = 0x100_0000;

function paletteOf(base: 30 | 40, color: number, mode: number): string | number {
  if (mode !== AMONG_16) return `${base + 8};5;${color}`;
  return color < 8 ? base + color : base + 60 + color - 8;
}

function rgb(color: number): string {
  return [color >> 16, color >> 8, color].map((each) => each & 255).join(";");
}

const MOUSE: Readonly<Record<string, string>> = { x10: "9", vt200: "1000", drag: "1002", any: "1003" };

function modesOf({ modes }: Terminal, { coreService, _charsetService }: Internals["_core"]): string {
  const set = [
    modes.applicationCursorKeysMode && "?1h",
    modes.applicationKeypadMode && "?66h",
    modes.bracketedPasteMode && "?2004h",
    modes.insertMode && "4h",
    modes.reverseWraparoundMode && "?45h",
    modes.sendFocusMode && "?1004h",
    !modes.wraparoundMode && "?7l",
    modes.mouseTrackingMode !== "none" && `?${MOUSE[modes.mouseTrackingMode]}h`,
    coreService.isCursorHidden && "?25l",
  ];
  const drawsLines = _charsetService.charset?.["`"] === "\u25c6";
  return `${set.map((mode) => (mode === false ? "" : `\u001b[${mode}`)).join("")}${drawsLines ? "\u001b(0" : ""}`;
}
