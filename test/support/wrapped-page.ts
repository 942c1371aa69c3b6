const WIDTH = 100;
/** Tables, headings, code, comments and link targets keep their lines. */
const KEPT = /^(?:$|\||#|<|\[[^\]]+\]:| {4})/;
const LIST_MARK = /^ {0,3}(?:[-*]|\d+\.) +/;

/** A generated document with its paragraphs and list items wrapped at 100 columns. */
export function wrappedPage(markdown: string): string {
  const lines = markdown.split("\n");
  const filled: string[] = [];
  let isCode = false;
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? "";
    if (/^\s*```/.test(line)) isCode = !isCode;
    const end = isCode || /^\s*```/.test(line) || KEPT.test(line) ? at + 1 : endOfBlock(lines, at);
    const block = lines.slice(at, end);
    filled.push(...(end === at + 1 && KEPT.test(line) ? block : isCode ? block : filledBlock(block)));
    at = end;
  }
  return filled.join("\n");
}

function endOfBlock(lines: readonly string[], from: number): number {
  let end = from + 1;
  while (end < lines.length && !startsBlock(lines[end] ?? "")) end += 1;
  return end;
}

function startsBlock(line: string): boolean {
  return KEPT.test(line) || LIST_MARK.test(line) || /^\s*```/.test(line);
}

function filledBlock(block: readonly string[]): readonly string[] {
  if (block.every((line) => line.length <= WIDTH)) return block;
  const [first = "", ...more] = block;
  const [mark = ""] = LIST_MARK.exec(first) ?? [];
  const words = [first.slice(mark.length), ...more].join(" ").match(/(?:`[^`]*`|\S)+/g) ?? [];
  const result: string[] = [];
  let current = mark;
  for (const word of words) {
    if (current.trim() !== mark.trim() && current.length + 1 + word.length > WIDTH) {
      result.push(current);
      current = " ".repeat(mark.length) + word;
    } else {
      current += current === mark ? word : ` ${word}`;
    }
  }
  return [...result, current];
}
