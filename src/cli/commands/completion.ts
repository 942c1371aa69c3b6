import { defineCommand } from "../command.ts";

export const command = defineCommand({
  usage: ["(bash | zsh | fish | powershell)"],
  description:
    "Prints a completion script: commands, flags, and names from the kubeconfig and its cluster. For kubectl sluice, put kubectl_complete-sluice into $PATH.",
  operands: [
    { name: "SHELL", help: "bash, zsh, fish or powershell", choices: ["bash", "zsh", "fish", "powershell"] },
  ],
  flags: {},
  examples: [
    { title: "In this bash, and in those to come", line: "source <(sluice completion bash)" },
    {
      title: "For every bash of this machine",
      line: "sluice completion bash > /usr/share/bash-completion/completions/sluice",
    },
    { title: "zsh", line: "source <(sluice completion zsh)" },
    { title: "fish", line: "sluice completion fish > ~/.config/fish/completions/sluice.fish" },
    { title: "PowerShell", line: "sluice completion powershell | Out-String | Invoke-Expression" },
  ],
});
