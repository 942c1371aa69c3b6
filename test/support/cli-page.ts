import { COMMAND_GROUPS, COMMANDS, type ListedCommand } from "../../src/cli/command-list.ts";
import { flagGroups, flagText, sentenceOf } from "../../src/cli/help-text.ts";
import { wrappedPage } from "./wrapped-page.ts";

/** A row that every command has; the page shows it once. */
const HELP_ROW = "help";
/** These flags have their fields' descriptions, in docs/configuration.md. */
const OVERRIDES = "Overrides of the file's ";

/** The guides whose examples a command uses: `--help` prints them, too. */
const GUIDES: Readonly<Record<string, string>> = {
  agent: "agent.md",
  conformance: "conformance.md",
  load: "load.md",
  probe: "probes.md",
  recordings: "session-recording.md",
  replay: "session-recording.md",
  sessions: "sessions.md",
};

/** If a table has more flags than this, its title names them. */
const MOST_NAMED = 12;

/** Writes docs/cli.md from all commands' tables. */
export async function cliPage(): Promise<string> {
  const index = COMMAND_GROUPS.map((group) => {
    const rows = COMMANDS.filter((command) => command.group === group);
    return `| ${group} | ${rows.map(({ name, summary }) => `[\`${name}\`](#sluice-${name}): ${summary}`).join("<br>")} |\n`;
  });
  const tables = await Promise.all(COMMANDS.map(tablesOf));
  const shown = new Map<string, string>();
  const sections: string[] = [];
  for (const [index, command] of COMMANDS.entries())
    sections.push(await sectionOf(command, tables[index] ?? [], shown));
  return wrappedPage(`# Command line

Every command and flag; \`npm run docs\` writes this page from \`src/cli/commands\`. \`sluice COMMAND --help\`
(\`-h\`) shows the same, and examples of each.

- Exit codes: 0 ok, 1 failed, 2 usage or configuration; sections name others.
- Flags as kubectl reads them: \`--name value\`, \`--name=value\`, \`-n value\`, \`-it\`, \`--switch=false\`, before
  and after operands; \`--\` ends them.
- "As in" names an earlier command whose flags have the same meaning; "repeatable" ones may be given
  several times.
- kubectl's connection flags also come before the command: \`sluice -n shop exec web -- ls\`.
- On a terminal verdicts are coloured, unless \`NO_COLOR\` is set ([no-color.org](https://no-color.org)).
- Installed as \`kubectl-sluice\`, the program is \`kubectl sluice\`.

| | commands |
|---|---|
${index.join("")}
${sections.join("\n")}`);
}

interface CliRow {
  readonly name: string;
  readonly text: string;
}

interface FlagTableText {
  readonly title: string;
  readonly rows: readonly CliRow[];
}

async function tablesOf({ load }: ListedCommand): Promise<FlagTableText[]> {
  const { command } = await load();
  return flagGroups(command.flags).map(([title, group]) => ({
    title,
    rows: group
      .filter(([flag]) => flag !== HELP_ROW)
      .map(([flag, row]) => ({ name: flagText(flag, row).trim(), text: sentenceOf(row) })),
  }));
}

/** If an earlier command has two or more of these rows, they are only named, with a link to it. */
function tableOf({ title, rows }: FlagTableText, command: string, shown: Map<string, string>): string {
  const keys = rows.map(({ name, text }) => [title, shortName(name), name, text].join("\n"));
  const earlier = keys.map((key) => shown.get(key) ?? command);
  const first = earlier.map((place) =>
    earlier.filter((same) => same === place).length > 1 ? place : command,
  );
  for (const [index, key] of keys.entries()) shown.set(key, first[index] ?? command);
  const own = rows.filter((_, index) => first[index] === command);
  const others = [...new Set(first)]
    .filter((place) => place !== command)
    .map((place) => {
      const same = rows.filter((_, index) => first[index] === place);
      if (same.length <= MOST_NAMED) {
        return `${same.map(({ name }) => shortName(name)).join(", ")}: as in [sluice ${place}](#sluice-${place}).\n`;
      }
      const lacking = [...shown].flatMap(([key, other]) => {
        const [table, name = ""] = key.split("\n");
        return other === place && table === title && !keys.includes(key) ? [name] : [];
      });
      const without = lacking.length === 0 ? "" : `, without ${lacking.join(", ")}`;
      return `${title}: as in [sluice ${place}](#sluice-${place})${without}.\n`;
    });
  const table = `| ${title} | |\n|---|---|\n${own.map(({ name, text }) => tableRow(name, text)).join("")}`;
  return [...(own.length === 0 ? [] : [table]), ...others].join("\n");
}

/** The flag without its value's name. */
function shortName(name: string): string {
  return `\`${(/--[\w-]+/.exec(name) ?? /^\S+/.exec(name))?.[0]}\``;
}

async function sectionOf(
  { name, load }: ListedCommand,
  tables: readonly FlagTableText[],
  shown: Map<string, string>,
): Promise<string> {
  const { command } = await load();
  const { usage, description, operands = [], examples, exitCodes } = command;
  const overrides = tables.filter(({ title }) => title.startsWith(OVERRIDES));
  const groups = tables
    .filter((table) => !overrides.includes(table) && table.rows.length > 0)
    .map((table) => tableOf(table, name, shown));
  if (overrides.length > 0)
    groups.push(
      "The other flags override fields of the file: [configuration.md](configuration.md) has each beside its\nfield.\n",
    );
  return [
    `## sluice ${name}\n`,
    `${description}\n`,
    codeBlock(usage.map((line) => `sluice ${name} ${line}`).join("\n")),
    ...(operands.length === 0
      ? []
      : [
          tableOf(
            { title: "Arguments", rows: operands.map((row) => ({ name: row.name, text: row.help })) },
            name,
            shown,
          ),
        ]),
    ...groups,
    GUIDES[name] === undefined
      ? codeBlock(examples.map(({ title, line }) => `# ${title}\n${line}`).join("\n\n"))
      : `Examples: [${GUIDES[name]}](${GUIDES[name]}).\n`,
    ...(exitCodes === undefined ? [] : [`Exit codes: ${exitCodes}\n`]),
  ].join("\n");
}

function tableRow(name: string, text: string): string {
  const escaped = (cell: string) => cell.replaceAll("|", "\\|").replaceAll("<", "&lt;");
  return `| \`${name.replaceAll("|", "\\|")}\` | ${escaped(text)} |\n`;
}

function codeBlock(text: string): string {
  return `\`\`\`sh\n${text}\n\`\`\`\n`;
}
