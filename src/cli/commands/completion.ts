import { defineCommand } from "../command.ts";

export const command = defineCommand({
  usage: ["(bash | zsh | fish)"],
  description:
    "Prints a completion script: commands, flags, and names from the kubeconfig and its cluster. For kubectl sluice, put kubectl_complete-sluice into $PATH.",
  operands: [{ name: "SHELL", help: "bash, zsh or fish", choices: ["bash", "zsh", "fish"] }],
  flags: {},
  examples: [
    { title: "In this bash, and in those to come", line: "source <(sluice completion bash)" },
    {
      title: "For every bash of this machine",
      line: "sluice completion bash > /usr/share/bash-completion/completions/sluice",
    },
    { title: "zsh", line: "source <(sluice completion zsh)" },
    { title: "fish", line: "sluice completion fish > ~/.config/fish/completions/sluice.fish" },
  ],
});
