import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { wrappedPage } from "./wrapped-page.ts";

const EVIDENCE = path.resolve(import.meta.dirname, "../../docs/evidence");

/**
 * A page of docs/evidence that several runs write: the text above the first `## `, and the
 * sections.
 */
export function readSections(file: string): { readonly head: string; readonly sections: readonly string[] } {
  const [head = "", ...sections] = (existsSync(file) ? readFileSync(file, "utf8") : "").split(/^(?=## )/m);
  return { head: head.trimEnd(), sections: sections.map((section) => section.trimEnd()) };
}

/** Writes one section in its old place, or as the last one. */
export function replaceSection(file: string, title: string, body: string, head?: string): void {
  const page = readSections(file);
  const section = `## ${title}\n\n${body.trim()}`;
  const index = page.sections.findIndex((candidate) => candidate.startsWith(`## ${title}\n`));
  const sections = index < 0 ? [...page.sections, section] : page.sections.with(index, section);
  writeFileSync(file, wrappedPage(`${[head?.trimEnd() ?? page.head, ...sections].join("\n\n")}\n`));
}

/** With SLUICE_WRITE_DOCS=1 writes a section of a file in docs/evidence. */
export function publishSection(file: string, title: string, body: string): void {
  if (process.env.SLUICE_WRITE_DOCS === "1") replaceSection(path.join(EVIDENCE, file), title, body);
}
