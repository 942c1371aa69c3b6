import { type Field, placedFields, type Table } from "../../packages/client/src/config/field.ts";
import { gatewayConfiguration } from "../../src/config/configuration.ts";
import { wrappedPage } from "./wrapped-page.ts";

const HEAD = `# Configuration

Every field of a \`GatewayConfiguration\`, the file of \`sluice serve --config FILE\`, with its type, default
and effect. [deploy/examples/gateway.yaml](../deploy/examples/gateway.yaml) shows all fields in one file;
\`npm run docs\` writes this page from \`src/config\`.

- The file is one YAML or JSON document. \`sluice check-config -f FILE\` reads it and the files it names,
  and prints every problem with line and path.
- Lists without a default are empty.
- Durations are Go's: \`30s\`, \`4h0m0s\`. Counts and bytes may be quantities: \`10k\`, \`64Ki\`. Null is absent.
- Relative file names start at the file's folder; those in flags at the working directory.
- A flag of \`sluice serve\` overrides its field. Names are kube-apiserver's; \`--kubeconfig\` is the kubelet's.
- SIGHUP reads the file again. Sections marked "without a restart" are applied; a change elsewhere is
  logged by its path and needs a restart. [workers.md](workers.md#sighup) lists the files read again.
- \`sluice config schema > sluice.schema.json\` writes a JSON Schema (draft-07). With this first line, an
  editor's YAML language server completes and checks the file:

  \`\`\`yaml
  # yaml-language-server: $schema=sluice.schema.json
  \`\`\`
`;

/** The columns of a table; those that are empty in a whole section are left out. */
const COLUMNS = ["field", "type and default", ""];

/** A longer list of names, such as all cipher suites, would make a table unreadable. */
const LONG_TYPE = 400;

/** Generates docs/configuration.md. */
export function configurationReference(): string {
  const sections = new Map<string, string>();
  for (const { path, field } of placedFields(gatewayConfiguration)) {
    if (field.table === undefined) continue;
    const [key, place] = [keyOf(field.table), path.join(".")];
    const other = sections.get(key);
    if (other === undefined || place.length < other.length) sections.set(key, place);
  }
  const places = { sections, fields: new Map<string, string>() };
  return wrappedPage(`${HEAD}\n${sectionText(gatewayConfiguration, "", places, false)}`);
}

interface Places {
  readonly sections: ReadonlyMap<string, string>;
  readonly fields: Map<string, string>;
}

function keyOf(table: Table): string {
  return JSON.stringify(Object.entries<Field>(table.fields).map(([name, { sentence }]) => [name, sentence]));
}

/**
 * A table of the fields, then the sections below. Equal sections are shown at the shortest path,
 * and the others link to it; so do equal fields, unless there is only one.
 */
function sectionText(table: Table, path: string, places: Places, isReloaded: boolean): string {
  const entries = Object.entries<Field>(table.fields);
  const first = entries.map(([name, field]) => shownAt(name, field, path, places));
  const shown = first.map((other) => (first.filter((same) => same === other).length > 1 ? other : path));
  const cells = entries
    .filter((_, index) => shown[index] === path)
    .map(([name, field]) => cellsOf(name, field, path, places));
  const columns = COLUMNS.map((_, index) => index).filter((index) => cells.some((row) => row[index] !== ""));
  const line = (row: readonly string[]): string =>
    `| ${columns.map((index) => row[index]?.replaceAll("|", "\\|")).join(" | ")} |\n`;
  const rows =
    cells.length === 0 ? [] : [line(COLUMNS), `${"|---".repeat(columns.length)}|\n`, ...cells.map(line)];
  const others = [...new Set(shown)]
    .filter((other) => other !== path)
    .map((other) => {
      const names = entries.filter((_, index) => shown[index] === other).map(([name]) => code(name));
      return `- ${names.join(", ")}: as in [\`${other}\`](#${anchor(other)}).\n`;
    });
  const sections = entries.flatMap(([name, { table: fields, ...field }]) => {
    if (fields === undefined) return [];
    const below = join(path, name);
    if (places.sections.get(keyOf(fields)) !== below) return [];
    const takesReload = isReloaded || field.isReloaded;
    const reload =
      takesReload && !isReloaded ? "Applied without a restart, with the sections below.\n\n" : "";
    return [`\n## \`${below}\`\n\n${reload}${sectionText(fields, below, places, takesReload)}`];
  });
  return [...rows, others.length > 0 && rows.length > 0 ? "\n" : "", ...others, ...sections].join("");
}

/** The section that already shows an equal field; from now on this section if there is none. */
function shownAt(name: string, field: Field, path: string, places: Places): string {
  if (field.table !== undefined) return path;
  const key = cellsOf(name, field, path, places).join("\n");
  const place = places.fields.get(key) ?? path;
  places.fields.set(key, place);
  return place;
}

function cellsOf(name: string, field: Field, path: string, places: Places): readonly string[] {
  const { type, range, default: usual, isRequired, flag, sentence, table } = field;
  const named = type.length > LONG_TYPE ? "list of names, as in the JSON Schema" : type;
  const section = table === undefined ? undefined : (places.sections.get(keyOf(table)) ?? join(path, name));
  const linked = section === undefined ? named : `[${type}](#${anchor(section)})`;
  const kind = [linked, range?.replace(" to ", "–")].filter(Boolean).join(" ");
  const fallback = isRequired ? "required" : isUsual(usual) ? "" : code(textOf(usual));
  const nameAndFlag = flag === undefined ? code(name) : `${code(name)}<br>${code(`--${flag.name}`)}`;
  const separator = fallback !== "required" && kind.includes("`") ? "; default " : ", ";
  return [nameAndFlag, [kind, fallback].filter(Boolean).join(separator), sentence];
}

function isUsual(value: unknown): boolean {
  return value === undefined || value === "" || (Array.isArray(value) && value.length === 0);
}

/** The value in YAML's flow style. */
function textOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.join(", ")}]`;
  if (typeof value !== "object" || value === null) return String(value);
  const members = Object.entries(value).map(([name, member]) => `${name}: ${textOf(member)}`);
  return `{${members.join(", ")}}`;
}

/** The anchor that GitHub derives from a heading. */
function anchor(path: string): string {
  return path.toLowerCase().replaceAll(".", "");
}

function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

function code(text: string): string {
  return `\`${text}\``;
}
