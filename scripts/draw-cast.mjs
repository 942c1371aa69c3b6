// Draws a recorded terminal (asciicast v3) as an SVG that plays and loops by itself: no script, no
// style sheet, no request. Pure.
import { stripVTControlCharacters } from "node:util";

/** Longer pauses are cut to this, as players do. */
const MAX_PAUSE = 1.2;
/** Changes that are closer together than this count as one. */
const MIN_STEP = 0.07;
/** How long the last screen is shown. */
const LAST = 4;
const [CHARACTER, LINE, MARGIN] = [8.43, 18, 14];

export function drawCast(text) {
  const [header, ...events] = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const { cols, rows } = header.term;
  const { spans, seconds } = spansOf(screensOf(events, cols, rows), rows);
  const [width, height] = [Math.ceil(cols * CHARACTER + 2 * MARGIN), rows * LINE + 2 * MARGIN];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(header.title)}">`,
    `<title>${escaped(header.title)}</title>`,
    `<rect width="100%" height="100%" rx="8" fill="#16181d"/>`,
    `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="14" fill="#d7dae0" xml:space="preserve">`,
    ...spans.map((span) => drawn(span, seconds)),
    "</g>\n</svg>\n",
  ].join("\n");
}

/**
 * The screens with their times, from an emulator of the few sequences that shells print in lines.
 */
function screensOf(events, cols, rows) {
  const screens = [];
  let lines = [""];
  let column = 0;
  let seconds = 0;
  const put = (character) => {
    if (column === cols) feed();
    const line = (lines.at(-1) ?? "").padEnd(column);
    lines[lines.length - 1] = line.slice(0, column) + character + line.slice(column + 1);
    column += 1;
  };
  const feed = () => {
    lines = [...lines, ""].slice(-rows);
    column = 0;
  };
  for (const [pause, code, text] of events) {
    seconds += Math.min(pause, MAX_PAUSE);
    if (code !== "o") continue;
    for (const character of stripVTControlCharacters(text)) {
      if (character === "\r") column = 0;
      else if (character === "\n") feed();
      else if (character === "\b") column = Math.max(0, column - 1);
      else if (character >= " ") put(character);
    }
    const last = screens.at(-1);
    if (last !== undefined && seconds - last.seconds < MIN_STEP) last.lines = [...lines];
    else screens.push({ seconds, lines: [...lines] });
  }
  return screens;
}

/** Each text with its position and the times when it appears and disappears. */
function spansOf(screens, rows) {
  const seconds = (screens.at(-1)?.seconds ?? 0) + LAST;
  const spans = [];
  for (let row = 0; row < rows; row += 1) {
    let open;
    for (const screen of screens) {
      const text = (screen.lines[row] ?? "").trimEnd();
      if (open?.text === text) continue;
      if (open !== undefined) open.to = screen.seconds;
      open = { row, text, from: screen.seconds, to: seconds };
      if (text !== "") spans.push(open);
    }
  }
  return { spans, seconds };
}

/** A program that does not show animations shows the last screen. */
function drawn({ row, text, from, to }, seconds) {
  const start = share(from / seconds);
  const end = share(to / seconds);
  const isLast = to === seconds;
  const values = isLast ? "hidden;visible" : "hidden;visible;hidden";
  const times = isLast ? `0;${start}` : `0;${start};${end}`;
  return (
    `<text x="${MARGIN}" y="${MARGIN + (row + 1) * LINE - 5}"${isLast ? "" : ' visibility="hidden"'}>${escaped(text)}` +
    `<animate attributeName="visibility" values="${values}" keyTimes="${times}" dur="${share(seconds)}s" calcMode="discrete" repeatCount="indefinite"/></text>`
  );
}

function share(value) {
  return String(Number(value.toFixed(4)));
}

function escaped(text) {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
