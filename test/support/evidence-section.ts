import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

/** With SLUICE_WRITE_DOCS=1: replaces the section under `## heading` of a file in docs/evidence, or adds it at the end. */
export function publishSection(file: string, heading: string, body: string): void {
  if (process.env.SLUICE_WRITE_DOCS !== "1") return;
  const document = path.resolve(import.meta.dirname, "../../docs/evidence", file);
  const [title = "", ...sections] = readFileSync(document, "utf8").split(/^(?=## )/m);
  const section = `## ${heading}\n\n${body}`;
  const at = sections.findIndex((text) => text.startsWith(`## ${heading}\n`));
  sections.splice(at < 0 ? sections.length : at, at < 0 ? 0 : 1, section);
  writeFileSync(document, `${[title, ...sections].map((part) => part.trimEnd()).join("\n\n")}\n`);
}
