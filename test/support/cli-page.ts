import { COMMAND_GROUPS, COMMANDS, type ListedCommand } from "../../src/cli/command-list.ts";
import { flagGroups, flagText, sentenceOf } from "../../src/cli/help-text.ts";
import { wrappedPage } from "./wrapped-page.ts";

/** Of each command: said once. */
const HELP_ROW = "help";
/** Their texts are those of the fields, in docs/configuration.md. */
const OVERRIDES = "Overrides of the file's ";

/** docs/cli.md, from the tables of all commands. */
export async function cliPage(): Promise<string> {
  const index = COMMAND_GROUPS.map((group) => {
    const rows = COMMANDS.filter((command) => command.group === group);
    return `| ${group} | ${rows.map(({ name, summary }) => `[\`${name}\`](#sluice-${name}): ${summary}`).join("<br>")} |\n`;
  });
  const tables = await Promise.all(COMMANDS.map(tablesOf));
  const all = tables.flat().filter(({ title }) => !title.startsWith(OVERRIDES));
  const shared = new Map(
    all
      .filter(({ text }, index) => all.slice(0, index).some((other) => other.text === text))
      .map((table) => [table.text, table]),
  );
  const sections = await Promise.all(
    COMMANDS.map((command, index) => sectionOf(command, tables[index] ?? [], shared)),
  );
  const common = [...shared.values()].map(({ title, text }) => `## ${title}\n\n${text}\n`);
  return wrappedPage(`# Command line

Every command and flag; \`npm run docs\` writes this page from \`src/cli/commands\`. \`sluice COMMAND --help\`
(\`-h\`) shows the same.

- Exit codes: 0 ok, 1 failed, 2 usage or configuration; sections name others.
- Flags as kubectl reads them: \`--name value\`, \`--name=value\`, \`-n value\`, \`-it\`, \`--switch=false\`, before
  and after operands; \`--\` ends them.
- kubectl's connection flags also come before the command: \`sluice -n shop exec web -- ls\`.
- Installed as \`kubectl-sluice\`, the program is \`kubectl sluice\`.

| | commands |
|---|---|
${index.join("")}
${[...sections, ...common].join("\n")}`);
}

interface FlagTableText {
  readonly title: string;
  readonly text: string;
  readonly names: readonly string[];
}

async function tablesOf({ load }: ListedCommand): Promise<FlagTableText[]> {
  const { command } = await load();
  return flagGroups(command.flags).flatMap(([title, group]) => {
    const rows = group.filter(([flag]) => flag !== HELP_ROW);
    const lines = rows.map(([flag, row]) => tableRow(flagText(flag, row).trim(), sentenceOf(row)));
    const names = rows.map(([flag, row]) => `\`${flagText(flag, row).trim().replaceAll("|", "\\|")}\``);
    return rows.length === 0 ? [] : [{ title, names, text: `| ${title} | |\n|---|---|\n${lines.join("")}` }];
  });
}

async function sectionOf(
  { name, load }: ListedCommand,
  tables: readonly FlagTableText[],
  shared: ReadonlyMap<string, unknown>,
): Promise<string> {
  const { command } = await load();
  const { usage, description, operands = [], examples, exitCodes } = command;
  const overrides = tables.filter(({ title }) => title.startsWith(OVERRIDES));
  const groups = tables
    .filter((table) => !overrides.includes(table))
    .map(({ title, text }) =>
      shared.has(text)
        ? `[${title}](#${title
            .toLowerCase()
            .replaceAll(/[^\w ]/g, "")
            .replaceAll(" ", "-")}).\n`
        : text,
    );
  if (overrides.length > 0) {
    const rows = overrides.map(({ title, names }) => {
      const section = title.slice(OVERRIDES.length);
      return `| [\`${section}\`](configuration.md#${section.toLowerCase().replaceAll(".", "")}) | ${names.join(", ")} |\n`;
    });
    groups.push(
      `| Section of the configuration | Flags that override its fields |\n|---|---|\n${rows.join("")}`,
    );
  }
  return [
    `## sluice ${name}\n`,
    `${description}\n`,
    codeBlock(usage.map((line) => `sluice ${name} ${line}`).join("\n")),
    ...(operands.length === 0
      ? []
      : [`| Arguments | |\n|---|---|\n${operands.map((row) => tableRow(row.name, row.help)).join("")}`]),
    ...groups,
    codeBlock(examples.map(({ title, line }) => `# ${title}\n${line}`).join("\n\n")),
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
