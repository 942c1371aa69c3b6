import { expect, it } from "vitest";
import { wrappedPage } from "./wrapped-page.ts";

const words = (count: number) => Array.from({ length: count }, (_, index) => `word${index}`).join(" ");

it("fills paragraphs and list items to 100 columns, and keeps their words", () => {
  const page = `# ${words(20)}\n\n${words(40)}\n\n- ${words(30)}\n- short\n`;
  const wrapped = wrappedPage(page);
  const texts = wrapped.split("\n").filter((line) => !line.startsWith("#"));
  expect(Math.max(...texts.map((line) => line.length))).toBeLessThanOrEqual(100);
  expect(wrapped.split(/\s+/)).toEqual(page.split(/\s+/));
  expect(texts.filter((line) => /^ {2}word/.test(line)).length).toBeGreaterThan(0);
});

it("keeps tables, code, headings and short paragraphs as they are written", () => {
  const page = [`| ${words(40)} |`, "```", words(40), "```", `    ${words(40)}`, "", "one", "two", ""].join(
    "\n",
  );
  expect(wrappedPage(page)).toBe(page);
});

it("breaks no code span", () => {
  const span = `\`${words(8)}\``;
  expect(wrappedPage(`${words(14)} ${span} ${words(5)}`)).toContain(span);
});
