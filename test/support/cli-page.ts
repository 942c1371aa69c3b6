import { COMMAND_GROUPS, COMMANDS, type ListedCommand } from "../../src/cli/command-list.ts";
import { flagGroups, flagText, sentenceOf } from "../../src/cli/help-text.ts";

/** docs/cli.md, from the tables of all commands. */
export async function cliPage(): Promise<string> {
  const index = COMMAND_GROUPS.map((group) => {
    const rows = COMMANDS.filter((command) => command.group === group);
    return `| ${group} | ${rows.map(({ name, summary }) => `[\`${name}\`](#sluice-${name}): ${summary}`).join("<br>")} |\n`;
  });
  const sections = await Promise.all(COMMANDS.map(sectionOf));
  return `# Command line

Every command and flag, as \`sluice COMMAND --help\` shows them. This page is written from their tables (\`src/cli/commands\`) by \`npm run docs\`.

Exit codes: 0 ok; 1 failed; 2 usage or configuration; where a command has others, its section has them. Flags are read as kubectl's are: \`--name value\`,
\`--name=value\`, \`-n value\`, \`-it\`, \`--switch=false\`, before and behind operands; \`--\` ends them. kubectl's connection flags also come before the command:
\`sluice -n shop exec web -- ls\`. Installed as \`kubectl-sluice\`, the program answers to \`kubectl sluice\`.

| | commands |
|---|---|
${index.join("")}
${sections.join("\n")}`;
}

async function sectionOf({ name, load }: ListedCommand): Promise<string> {
  const { command } = await load();
  const { usage, description, operands = [], flags, examples, exitCodes } = command;
  const groups = flagGroups(flags).map(([title, rows]) => {
    const lines = rows.map(([flag, row]) => tableRow(flagText(flag, row).trim(), sentenceOf(row)));
    return `| ${title} | |\n|---|---|\n${lines.join("")}`;
  });
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
