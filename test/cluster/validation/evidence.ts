import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const document = path.resolve(import.meta.dirname, "../../../docs/evidence/validation.md");

/** Writes a section of docs/evidence/validation.md in place of the one of that title, where SLUICE_WRITE_DOCS=1. Two tests have one each. */
export function writeEvidence(title: string, text: string): void {
  if (process.env.SLUICE_WRITE_DOCS !== "1") return;
  const before = existsSync(document) ? readFileSync(document, "utf8") : "";
  const [head = "", ...sections] = before.split(/^(?=## )/m);
  const section = `## ${title}\n\n${text.trim()}\n\n`;
  const isThere = sections.some((other) => other.startsWith(`## ${title}\n`));
  const others = sections.map((other) => (other.startsWith(`## ${title}\n`) ? section : other));
  const all = [head, ...(isThere ? others : [...others, section])];
  writeFileSync(
    document,
    `${all
      .map((part) => `${part.trim()}\n\n`)
      .join("")
      .trim()}\n`,
  );
}
