// Writes the man folder of a built folder: sluice(1), a page for each command, and sluice.yaml(5),
// from the tables of commands and of the configuration, as built.
//
//   node scripts/build-man.mjs FOLDER
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const dist = pathToFileURL(`${path.resolve(process.argv[2])}/`);
const { COMMAND_GROUPS, COMMANDS } = await import(new URL("src/cli/command-list.js", dist));
const { flagGroups, flagText, sentenceOf } = await import(new URL("src/cli/help-text.js", dist));
const { gatewayConfiguration } = await import(new URL("src/config/configuration.js", dist));
const { placedFields } = await import("@sluice/client/internal/config/field");

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const folder = new URL("man/", dist);

/** The text of a page: escapes backslashes, hyphens and whatever would begin a roff request. */
const plain = (text) =>
  text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replace(/^([.'])/gm, "\\&$1");
const section = (title, ...lines) => [`.SH ${title}`, ...lines];
const item = (name, text) => [".TP", `\\fB${plain(name)}\\fR`, plain(text)];
const literal = (lines) => [".PP", ".nf", ".RS 4", ...lines.map(plain), ".RE", ".fi"];
const write = (name, number, summary, lines) => {
  const head = [
    `.TH "${plain(name.toUpperCase())}" "${number}" "" "sluice ${version}" "Sluice"`,
    // A line that is one long name cannot be adjusted to both margins.
    ".ad l",
    ...section("NAME", `${plain(name)} \\- ${plain(summary)}`),
  ];
  writeFileSync(new URL(`${name}.${number}`, folder), `${[...head, ...lines].join("\n")}\n`);
};

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });

for (const { name, summary, load } of COMMANDS) {
  const { command } = await load();
  const { usage, description, operands = [], flags, examples, exitCodes } = command;
  write(`sluice-${name}`, 1, summary, [
    ...section("SYNOPSIS", ...usage.flatMap((line) => [plain(`sluice ${name} ${line}`), ".br"]).slice(0, -1)),
    ...section("DESCRIPTION", plain(description)),
    ...(operands.length === 0
      ? []
      : section("ARGUMENTS", ...operands.flatMap((row) => item(row.name, row.help)))),
    ...flagGroups(flags).flatMap(([title, rows]) =>
      section(
        plain(title.toUpperCase()),
        ...rows.flatMap(([flag, row]) => item(flagText(flag, row).trim(), sentenceOf(row))),
      ),
    ),
    ...section(
      "EXAMPLES",
      ...examples.flatMap(({ title, line }) => [".PP", plain(title), ...literal(line.split("\n"))]),
    ),
    ...section("EXIT STATUS", plain(exitCodes ?? "0: ok. 1: failed. 2: wrong usage or configuration.")),
    ...section("SEE ALSO", "\\fBsluice\\fR(1), \\fBsluice.yaml\\fR(5)"),
  ]);
}

write("sluice", 1, "the streaming front door of Kubernetes nodes", [
  ...section("SYNOPSIS", "\\fBsluice\\fR \\fICOMMAND\\fR [flags]"),
  ...COMMAND_GROUPS.flatMap((group) => {
    const rows = COMMANDS.filter((command) => command.group === group);
    return section(
      plain(group.toUpperCase()),
      ...rows.flatMap(({ name, summary }) => item(`sluice-${name}(1)`, summary)),
    );
  }),
]);

const fields = [...placedFields(gatewayConfiguration)];
write("sluice.yaml", 5, "configuration of sluice serve", [
  ...section(
    "DESCRIPTION",
    plain(
      "A YAML document of kind GatewayConfiguration. These are its fields; [] stands for each entry of a list.",
    ),
  ),
  ...section(
    "FIELDS",
    ...fields.flatMap(({ path, field }) => {
      const { type, range, default: usual, isRequired, sentence } = field;
      const notes = [
        range === undefined ? type : `${type}, ${range}`,
        ...(isRequired
          ? ["required"]
          : usual === undefined
            ? []
            : [`default ${JSON.stringify(usual).replaceAll('","', '", "')}`]),
      ];
      return item(
        path.join("."),
        `${sentence.replaceAll("`", "")} (${notes.join("; ").replaceAll("`", "")})`,
      );
    }),
  ),
  ...section("SEE ALSO", "\\fBsluice\\-serve\\fR(1), \\fBsluice\\-check\\-config\\fR(1)"),
]);
