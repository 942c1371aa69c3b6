/**
 * Replaces the part `name` of a document: the lines between `<!-- npm run docs: NAME -->` and `<!--
 * end -->`. The text around it is written by hand.
 */
export function withGeneratedPart(document: string, name: string, text: string): string {
  const start = `<!-- npm run docs: ${name} -->\n`;
  const from = document.indexOf(start);
  const to = document.indexOf("<!-- end -->", from);
  if (from === -1 || to === -1) throw new Error(`the document has no part "${name}"`);
  return `${document.slice(0, from + start.length)}\n${text.trim()}\n\n${document.slice(to)}`;
}
