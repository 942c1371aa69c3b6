// The flags of a measuring script: with --help, or one that it does not have, it says which it has.
import { readFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";

/**
 * As `parseArgs`. `--help` prints the script's first comment and ends; a wrong flag, and `--write`
 * beside `--against`, end with 2.
 */
export function readFlags(config) {
  const options = { ...config.options, help: { type: "boolean", short: "h", default: false } };
  try {
    const { values, positionals } = parseArgs({ ...config, options });
    const { help, ...own } = values;
    if (own.write && own.against !== undefined) {
      process.stderr.write("--write writes the figures of this build alone: leave --against out\n");
      process.exit(2);
    }
    if (!help) return { values: own, positionals };
    process.stdout.write(`${usage(config.options)}\n\n${firstComment(process.argv[1])}\n`);
    process.exit(0);
  } catch (error) {
    if (!error.code?.startsWith("ERR_PARSE_ARGS")) throw error;
    process.stderr.write(`${error.message}\n${usage(config.options)}\n`);
    process.exit(2);
  }
}

function usage(options) {
  const flags = Object.entries(options).map(([name, { type, default: value }]) =>
    type === "boolean" ? `[--${name}]` : `[--${name} ${value || "VALUE"}]`,
  );
  return ["Usage: node", path.relative("", process.argv[1]), ...flags].join(" ");
}

function firstComment(file) {
  const lines = readFileSync(file, "utf8").split("\n");
  const end = lines.findIndex((line) => !line.startsWith("//"));
  return lines
    .slice(0, end)
    .map((line) => line.slice(3))
    .join("\n");
}
