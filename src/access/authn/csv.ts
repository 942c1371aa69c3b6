export interface CsvRecord {
  readonly fields: readonly string[];
  /** The record's first line, from 1. */
  readonly line: number;
}

/** Malformed CSV. The message never quotes the text, which may be secret. */
export class CsvError extends Error {
  override readonly name = "CsvError";
  readonly line: number;

  constructor(line: number, problem: string) {
    super(`record on line ${line}: ${problem}`);
    this.line = line;
  }
}

/**
 * Parses CSV as Go's encoding/csv does for kube-apiserver's token file: any number of fields, `""`
 * and line breaks inside quotes, no empty lines. Throws CsvError for a stray or unclosed quote.
 */
export function parseCsv(source: string): CsvRecord[] {
  // A carriage return before a line break or at the end belongs to the line break.
  const text = source.replaceAll("\r\n", "\n").replace(/\r$/, "");
  const records: CsvRecord[] = [];
  let [position, line] = [0, 1];
  while (position < text.length) {
    const start = line;
    const blank = lineBreakLength(text, position);
    if (blank > 0) {
      position += blank;
      line++;
      continue;
    }
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
    records.push({ fields, line: start });
  }
  return records;
}

const FIELD_END = /[,\n]/g;

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
  return text[at] === "\n" ? 1 : 0;
}

function countLines(text: string, start: number, end: number): number {
  return text.slice(start, end).split("\n").length - 1;
}
