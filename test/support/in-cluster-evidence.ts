import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const DOCUMENT = fileURLToPath(new URL("../../docs/evidence/in-cluster.md", import.meta.url));

/**
 * With SLUICE_WRITE_DOCS=1, replaces the text between `<!-- NAME -->` and `<!-- end of NAME -->` in
 * docs/evidence/in-cluster.md.
 */
export function writeEvidence(name: string, text: string): void {
  if (process.env.SLUICE_WRITE_DOCS !== "1") return;
  const page = readFileSync(DOCUMENT, "utf8");
  const [begin, end] = [`<!-- ${name} -->\n`, `\n<!-- end of ${name} -->`];
  const [before, rest = ""] = page.split(begin);
  const after = rest.split(end)[1];
  if (after === undefined) throw new Error(`${DOCUMENT} has no part ${name}`);
  writeFileSync(DOCUMENT, `${before}${begin}${text}${end}${after}`);
}
