import { describe, expect, it } from "vitest";
import { commentsOf, markdownFiles, readSource, sourceFiles, withoutComments } from "./source-files.ts";

/** Names that gave way to a term of the field. */
const BANNED_NAMES =
  /\b(?:Surroundings|HandOver|WorkerSide|SharedPlaces|LearnedFindings|ProbeFinding|askNode|AskedNode|FirstWordWatch|lastWord|OverdueEnd|roomOrNobody|DecidedSession|DecidedOn|endAway|resumeElsewhere|SessionHolder|afterLifeOf|ConnectionKeeper|DescribedProbe|runningUnder|ProberWatch|lookAtCluster|standin)\b/g;

/** Words and turns that readers have to decipher: name the subject, and what it does. */
const BANNED_PHRASES =
  /\bcan not\b|\b(?:nobody|whoever|whom|somebody|anybody)\b|\bwho\b|\bknows us not\b|\b(?:goes|gone|go) on with\b|\bwhat is where\b|\breads? along\b|\blast word\b/gi;

/** Two lines of 100 columns. */
const MAX_COMMENT_CHARACTERS = 200;

/** What makes a longer comment worth its length. */
const citation = /RFC ?\d|KEP-\d|CVE-\d|§|\bsection\b|#\d{3,}|https?:|docs\/|\w\.(?:go|proto|md)\b/;

/** Published packages: their comments are their users' documentation, with units, shapes and errors. */
const PUBLISHED = /^(?:protocols\/|packages\/client\/src\/[^/]+$)/;

/** One line for each change or export: machines write and merge them. */
const UNWRAPPED = /^CHANGELOG\.md$|(?:^|\/)api\.md$/;

const sources = sourceFiles();
const internal = sources.filter((file) => !PUBLISHED.test(file));
const documents = markdownFiles().filter((file) => !file.startsWith("docs/evidence/"));

describe("language", () => {
  it("sources use the field's names", () => {
    const found = sources.flatMap((file) =>
      Array.from(withoutComments(readSource(file)).matchAll(BANNED_NAMES), ([name]) => `${file}: ${name}`),
    );
    expect(found).toEqual([]);
  });

  it("messages say cannot, but for Kubernetes' own sentences", () => {
    const theirs = /existing toleration can not be modified|filepath can not be empty/;
    const found = sources.flatMap((file) =>
      withoutComments(readSource(file))
        .split("\n")
        .filter((line) => /\bcan not\b/.test(line) && !theirs.test(line))
        .map((line) => `${file}: ${line.trim()}`),
    );
    expect(found).toEqual([]);
  });

  it("comments name their subjects", () => {
    const found = sources.flatMap((file) =>
      commentsOf(readSource(file)).flatMap((comment) => phrasesIn(comment).map((hit) => `${file}: ${hit}`)),
    );
    expect(found).toEqual([]);
  });

  it("comments have at most two lines of 100 columns, or cite a specification", () => {
    const long = internal.flatMap((file) =>
      commentsOf(readSource(file))
        .filter((comment) => comment.length > MAX_COMMENT_CHARACTERS && !citation.test(comment))
        .map((comment) => `${file}: ${comment.slice(0, 60)}`),
    );
    expect(long).toEqual([]);
  });

  it.each(
    documents.filter((file) => !UNWRAPPED.test(file)),
  )("%s keeps its texts within 100 columns", (file) => {
    expect(longLines(readSource(file))).toEqual([]);
  });

  it.each(documents)("%s names its subjects", (file) => {
    expect(phrasesIn(proseOf(readSource(file)))).toEqual([]);
  });
});

describe("the rules of language themselves", () => {
  it("a comment is joined from its lines, without its marks", () => {
    const source = `/** One,\n * two. */\nconst url = "http://x"; // three\n// four\n  // five\nf();`;
    expect(commentsOf(source)).toEqual(["One, two.", "three four five"]);
  });

  it("tables, code and links may be long, texts may not", () => {
    const long = "word ".repeat(25);
    const kept = [
      `| ${long} |`,
      `    ${long}`,
      `\`\`\`\n${long}\n\`\`\``,
      `[a]: ${"x".repeat(120)}`,
      "x".repeat(120),
    ];
    expect(longLines(kept.join("\n"))).toEqual([]);
    expect(longLines(`${long}\n- ${long}`)).toHaveLength(2);
  });

  it.each([
    "It can not.",
    "Nobody reads.",
    "Who asks?",
    "The client, whom it knows",
  ])("%s is found", (text) => {
    expect(phrasesIn(text)).toHaveLength(1);
  });

  it("titles of tests and code in documents are not prose", () => {
    expect(
      phrasesIn(proseOf("| a bound | `test/a.test.ts`: nobody reads; `b.test.ts`: who | `who` |")),
    ).toEqual([]);
  });
});

/** Of a document's paragraphs and lists, if they can be broken. */
function longLines(markdown: string): string[] {
  return markdown
    .replace(/^ *```[\s\S]*?^ *```/gm, "")
    .split("\n")
    .filter(
      (line) => line.length > 100 && !/^(?:\||#|<| {4}|\[[^\]]+\]:)/.test(line) && / \S/.test(line.trim()),
    );
}

function phrasesIn(text: string): string[] {
  return Array.from(text.matchAll(BANNED_PHRASES), ({ index }) =>
    text.slice(Math.max(0, index - 30), index + 40),
  );
}

/** A document without code, and without titles of tests behind the names of their files. */
function proseOf(markdown: string): string {
  return markdown
    .replace(/```[\s\S]*?```|^ {4}.*$/gm, "")
    .replace(/`[^`\n]*\.test\.ts`: [^;|\n]*|the same: [^;|\n]*/g, "")
    .replace(/`[^`\n]*`/g, "");
}
