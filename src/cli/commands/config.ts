import { defineCommand } from "../command.ts";

export const command = defineCommand({
  usage: ["schema"],
  description:
    "Prints the JSON Schema (draft-07) of a GatewayConfiguration. An editor with a YAML language server completes and checks a configuration that begins with: # yaml-language-server: $schema=sluice.schema.json",
  operands: [{ name: "schema", help: "the JSON Schema", choices: ["schema"] }],
  flags: {},
  examples: [
    { title: "Beside the configuration, for editors", line: "sluice config schema > sluice.schema.json" },
  ],
});
