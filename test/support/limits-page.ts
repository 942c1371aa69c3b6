import { readdirSync, readFileSync } from "node:fs";
import { type Field, placedFields } from "../../packages/client/src/config/field.ts";
import { gatewayConfiguration } from "../../src/config/configuration.ts";
import { type Bound, boundsIn, isSentenceOfBound } from "./fixed-bound.ts";

const root = new URL("../../", import.meta.url);

/** The heading for each package's sources. */
const HEADING: Readonly<Record<string, string>> = {
  src: "The gateway and its commands",
  "packages/client/src": "@sluice/client",
  "packages/lab/src": "@sluice/lab",
  protocols: "@sluice/protocols",
};

/** Fields whose description says what happens past them, and all of `limits` and `timeouts`. */
export function configuredBounds(): Bound[] {
  const places = new Map<string, Bound>();
  for (const { path, field } of placedFields(gatewayConfiguration)) {
    const name = path.join(".");
    if (!isBound(name, field)) continue;
    // A section at several places is listed at the shortest path, as in docs/configuration.md.
    const key = `${path.slice(-2).join(".")} ${field.sentence}`;
    const other = places.get(key);
    if (other === undefined || name.length < other.name.length) places.set(key, boundOf(name, field));
  }
  const isMain = ({ name }: Bound): boolean => /^(?:limits|timeouts)\./.test(name);
  return [...places.values()].toSorted((a, b) => Number(isMain(b)) - Number(isMain(a)));
}

function isBound(name: string, { table, sentence }: Field): boolean {
  return table === undefined && (/^(?:limits|timeouts)\./.test(name) || isSentenceOfBound(sentence));
}

function boundOf(name: string, { default: usual, sentence }: Field): Bound {
  return { name, value: usual === undefined ? "" : String(usual), sentence };
}

/** Constants whose comment says what happens past them. */
export function fixedBounds(): Bound[] {
  return Object.keys(HEADING).flatMap((folder) =>
    readdirSync(new URL(folder, root), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts") && !/(?:^|\/)(?:node_modules|dist(?:\.\d+)?)\//.test(name))
      .map((name) => `${folder}/${name}`)
      .sort()
      .flatMap((file) => boundsIn(readFileSync(new URL(file, root), "utf8"), file)),
  );
}

/** The generated part of docs/limits.md; docs/configuration.md has the configured bounds. */
export function limitsTables(): string {
  const tables = Object.entries(HEADING).map(([folder, heading]) => {
    const bounds = fixedBounds().filter(({ file }) => file?.startsWith(`${folder}/`));
    return bounds.length === 0 ? "" : `\n### ${heading}\n\n${fixedTable(bounds)}`;
  });
  return `## Fixed\n${tables.join("")}`;
}

/** A value that shows its unit, so the text beside it need not. */
const BYTES = /\d (?:[KMG]i)?B$/;

/** The row itself. */
const SUBJECT = /^(?:it is|they are|it|they) (?!wait)/;

/**
 * The reason for a bound's value, such as a comparison or a usual size. It is shown only in the
 * source.
 */
const REASON =
  /(?:; |: (?![^`]*`)|, (?:(?:as|as in|as client-go|as Go|so that|which|whose|with|more than|three times|such as|enough for|usually|less than|including|if the|some|as their|as the) |as an|and so )).*$/;

function withoutArticle(text: string): string {
  const rest = text.replace(/^(?:An?|The) /, "");
  return /^(?:[A-Z]{2}|\w+-?[A-Z])/.test(rest) ? rest : rest.charAt(0).toLowerCase() + rest.slice(1);
}

function fixedTable(bounds: readonly Bound[]): string {
  const rows = bounds.map(({ name, file = "", value, sentence }) => {
    const [, what = "", effect = ""] = /^(.*?)\.? Past it(?::|,)? (.*?)\.?$/.exec(sentence) ?? [];
    const subject = withoutArticle(what.replace(/ \([^)]*\)/g, "").replace(REASON, ""));
    const bounded = BYTES.test(value) ? subject.replace(/^bytes of /, "") : subject;
    const after = effect.replace(SUBJECT, "");
    return `| [\`${name}\`](../${file}) ${value}: ${bounded} | ${after} |\n`.replace(
      /(?<=\w)\|(?=\w)/g,
      "\\|",
    );
  });
  return `| limit | past it |\n|---|---|\n${rows.join("")}`;
}
