import { type Field, placedFields, type Table } from "../../packages/client/src/config/field.ts";
import { gatewayConfiguration } from "../../src/config/configuration.ts";
import { wrappedPage } from "./wrapped-page.ts";

const HEAD = `# Configuration

Every field of a \`GatewayConfiguration\`, the file of \`sluice serve --config FILE\`. \`npm run docs\` writes
this page from \`src/config\`. [deploy/examples/gateway.yaml](../deploy/examples/gateway.yaml) shows all
fields in one file; [limits.md](limits.md) the effect of limits and timeouts.

- The file is one YAML or JSON document. \`sluice check-config -f FILE\` reads it and the files it names,
  and prints every problem with line and path.
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

/** Those that are empty in a whole section are left out of its table. */
const COLUMNS = ["field", "type", "default", "flag", ""];

/** A longer list of names, such as all cipher suites, makes a table unreadable. */
const LONG_TYPE = 400;

/** docs/configuration.md. */
export function configurationReference(): string {
  const places = new Map<string, string>();
  for (const { path, field } of placedFields(gatewayConfiguration)) {
    if (field.table === undefined) continue;
    const [key, place] = [keyOf(field.table), path.join(".")];
    const other = places.get(key);
    if (other === undefined || place.length < other.length) places.set(key, place);
  }
  return wrappedPage(`${HEAD}\n${sectionText(gatewayConfiguration, "", places, false)}`);
}

function keyOf(table: Table): string {
  return JSON.stringify(Object.entries<Field>(table.fields).map(([name, { sentence }]) => [name, sentence]));
}

/** A table of the fields, then the sections below. Fields of several sections are shown at the shortest path. */
function sectionText(
  table: Table,
  path: string,
  places: ReadonlyMap<string, string>,
  isReloaded: boolean,
): string {
  const entries = Object.entries<Field>(table.fields);
  const cells = entries.map(([name, field]) => cellsOf(name, field, path));
  const columns = COLUMNS.map((_, index) => index).filter((index) => cells.some((row) => row[index] !== ""));
  const line = (row: readonly string[]): string =>
    `| ${columns.map((index) => row[index]?.replaceAll("|", "\\|")).join(" | ")} |\n`;
  const rows = [line(COLUMNS), `${"|---".repeat(columns.length)}|\n`, ...cells.map(line)];
  const place = places.get(keyOf(table)) ?? path;
  if (place !== path) return `The fields of [\`${place}\`](#${anchor(place)}).\n`;
  const sections = entries.flatMap(([name, { table: fields, ...field }]) => {
    if (fields === undefined) return [];
    const below = join(path, name);
    const takesReload = isReloaded || field.isReloaded;
    const reload = takesReload ? "Applied without a restart.\n\n" : "";
    return [`\n## \`${below}\`\n\n${reload}${sectionText(fields, below, places, takesReload)}`];
  });
  return [...rows, ...sections].join("");
}

function cellsOf(name: string, field: Field, path: string): readonly string[] {
  const { type, range, default: usual, isRequired, flag, sentence, table } = field;
  const named = type.length > LONG_TYPE ? "list of names, as in the JSON Schema" : type;
  const kind = [table === undefined ? named : `[${type}](#${anchor(join(path, name))})`, range].filter(
    Boolean,
  );
  const fallback = isRequired ? "required" : usual === undefined || usual === "" ? "" : code(textOf(usual));
  return [code(name), kind.join(", "), fallback, flag === undefined ? "" : code(`--${flag.name}`), sentence];
}

/** In YAML's flow style. */
function textOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.join(", ")}]`;
  if (typeof value !== "object" || value === null) return String(value);
  const members = Object.entries(value).map(([name, member]) => `${name}: ${textOf(member)}`);
  return `{${members.join(", ")}}`;
}

/** As GitHub makes it of a heading. */
function anchor(path: string): string {
  return path.toLowerCase().replaceAll(".", "");
}

function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

function code(text: string): string {
  return `\`${text}\``;
}
