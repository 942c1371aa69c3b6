// Writes the files that are derived from the chart's values.yaml and the built program's
// configuration (npm run build): values.schema.json and the table in the chart's README. With
// `--check` only compares, and exits with 1 if one is stale.
import { readFileSync, writeFileSync } from "node:fs";
import { isMap, isSeq, parseDocument } from "yaml";

const { configurationSchema } = await import("../dist/src/config/configuration.js");

const chart = new URL("../deploy/chart/", import.meta.url);
const document = parseDocument(readFileSync(new URL("values.yaml", chart), "utf8"));
const values = document.contents;
const read = (name) => readFileSync(new URL(name, chart), "utf8");

const OF_SERVICES = {
  "service.type": { enum: ["ClusterIP", "NodePort", "LoadBalancer"] },
  "service.externalTrafficPolicy": { enum: ["", "Cluster", "Local"] },
};
/** The schema of a value, by its path or the end of its path. */
const CONSTRAINTS = {
  ...OF_SERVICES,
  "image.digest": { pattern: "^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})?$" },
  "image.pullPolicy": { enum: ["Always", "IfNotPresent", "Never"] },
  "rbac.impersonate": { enum: ["constrained", "legacy", "none"] },
  "service.port": { minimum: 1, maximum: 65535 },
};

/** Users fill in `{}` and `[]`; any other value allows only what is written here. */
function schemaOf(node, comment, name, path = "") {
  const description = comment === undefined ? {} : { description: comment };
  if (isSeq(node)) return { type: "array", ...description };
  if (isMap(node)) {
    if (name === "config") return { $ref: "#/$defs/configuration", ...description };
    if (node.items.length === 0 || node.flow) return { type: "object", ...description };
    const properties = Object.fromEntries(
      node.items.map((pair) => [
        pair.key.value,
        schemaOf(pair.value, commentOf(pair, node), pair.key.value, `${path}.${pair.key.value}`),
      ]),
    );
    return { type: "object", ...description, additionalProperties: false, properties };
  }
  const type = typeof node.value === "number" ? "integer" : typeof node.value;
  const end = Object.keys(CONSTRAINTS).find((each) => path.endsWith(`.${each}`));
  return { type, ...description, ...CONSTRAINTS[end], default: node.value };
}

/**
 * Any part of a configuration; the chart has the rest. Sections that users begin are checked as by
 * `check-config`.
 */
function partOfConfiguration() {
  const { $schema: _, required: __, ...schema } = configurationSchema();
  return schema;
}

/** The `# -- ` lines above a key. The parser assigns those above a map's first key to the map. */
function commentOf(pair, map) {
  const text =
    (pair === map.items[0] ? (map.commentBefore ?? document.commentBefore) : pair.key.commentBefore) ?? "";
  const lines = text.split("\n").map((line) => line.trim());
  const first = lines.findLastIndex((line) => line.startsWith("-- "));
  return first === -1 ? undefined : lines.slice(first).join(" ").slice("-- ".length);
}

function rowsOf(node, path) {
  return node.items.flatMap((pair) => {
    const name = path === "" ? pair.key.value : `${path}.${pair.key.value}`;
    const comment = commentOf(pair, node);
    const isSection = isMap(pair.value) && pair.value.items.length > 0 && !pair.value.flow;
    const own = { name, text: comment ?? "", default: isSection ? "" : JSON.stringify(pair.value.toJSON()) };
    return isSection ? rowsOf(pair.value, name) : [own];
  });
}

const root = schemaOf(values);
// Helm passes the parent chart's `global` to every chart.
const schema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  ...root,
  properties: { ...root.properties, global: { type: "object" } },
  $defs: { configuration: partOfConfiguration() },
};
const rows = rowsOf(values, "");
/** The names of values without a comment, by default. */
const plain = new Map();
for (const { name, default: value } of rows.filter(({ text }) => text === ""))
  plain.set(value, [...(plain.get(value) ?? []), `\`${name}\``]);
const table = [
  "| value | default | what it is |",
  "|---|---|---|",
  ...rows
    .filter(({ text }) => text !== "")
    .map(({ name, text, default: value }) => `| \`${name}\` | \`${value}\` | ${text} |`),
  "",
  "| default | Kubernetes' own fields, and switches that their names explain |",
  "|---|---|",
  ...Array.from(plain, ([value, names]) => `| \`${value}\` | ${names.join(", ")} |`),
].join("\n");
const readme = read("README.md").replace(
  /(<!-- values -->\n)[\s\S]*(\n<!-- end of values -->)/,
  (_, begin, end) => `${begin}${table}${end}`,
);
const files = { "values.schema.json": `${JSON.stringify(schema, undefined, 2)}\n`, "README.md": readme };

const stale = Object.entries(files).filter(([name, text]) => {
  try {
    return read(name) !== text;
  } catch {
    return true;
  }
});
if (process.argv.includes("--check")) {
  for (const [name] of stale) console.error(`deploy/chart/${name} is stale: node scripts/build-chart.mjs`);
  process.exitCode = stale.length === 0 ? 0 : 1;
} else {
  for (const [name, text] of stale) writeFileSync(new URL(name, chart), text);
}
