export interface CsvRecord {
  readonly fields: readonly string[];
  /** 1-based line on which the record starts. */
  readonly line: number;
}

/** The text is not well-formed CSV; the message never repeats its contents, which may be secrets. */
export class CsvError extends Error {
  override readonly name = "CsvError";
  readonly line: number;

  constructor(line: number, problem: string) {
    super(`record on line ${line}: ${problem}`);
    this.line = line;
  }
}

/**
 * Reads CSV by RFC 4180 with the settings of kube-apiserver's token file: any number of fields, `""` for a quote inside quotes,
 * line breaks inside quotes, blank lines left out. Throws CsvError for a stray or an unclosed quote.
 */
export function parseCsv(text: string): CsvRecord[] {
  const records: CsvRecord[] = [];
  let [position, line] = [0, 1];
  while (position < text.length) {
    const start = line;
    const fields: string[] = [];
    let isRecordOpen = true;
    while (isRecordOpen) {
      const field = readField(text, position, start);
      line += countLines(text, position, field.end);
      fields.push(field.value);
      isRecordOpen = text[field.end] === ",";
      position = field.end + (isRecordOpen ? 1 : lineBreakLength(text, field.end));
    }
    line++;
    const isBlank = fields.length === 1 && fields[0] === "";
    if (!isBlank) records.push({ fields, line: start });
  }
  return records;
}

const FIELD_END = /,|\r?\n/g;

function readField(text: string, start: number, line: number): { value: string; end: number } {
  if (text[start] !== '"') {
    FIELD_END.lastIndex = start;
    const end = FIELD_END.exec(text)?.index ?? text.length;
    const value = text.slice(start, end);
    if (value.includes('"')) throw new CsvError(line, 'bare " in non-quoted field');
    return { value, end };
  }
  let close = text.indexOf('"', start + 1);
  while (close >= 0 && text[close + 1] === '"') close = text.indexOf('"', close + 2);
  if (close < 0) throw new CsvError(line, 'missing " at the end of a quoted field');
  const end = close + 1;
  if (end < text.length && text[end] !== "," && lineBreakLength(text, end) === 0) {
    throw new CsvError(line, 'extraneous or missing " in quoted field');
  }
  return { value: text.slice(start + 1, close).replaceAll('""', '"'), end };
}

function lineBreakLength(text: string, at: number): number {
  if (text[at] === "\n") return 1;
  return text.startsWith("\r\n", at) ? 2 : 0;
}

function countLines(text: string, start: number, end: number): number {
  return text.slice(start, end).split("\n").length - 1;
}
