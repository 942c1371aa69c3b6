import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../../src/cli/command-list.ts";
import { complete } from "../../../src/cli/completion/complete.ts";

const names = async (kind: string) => [`${kind}-a`, `${kind}-b`, "other"];
const [FILES, NOTHING, FOLDERS] = [0, 4, 16];

describe("complete", () => {
  it.each<[string, string[], number]>([
    ["ex", ["explain", "exec"], NOTHING],
    ["-n x ex", ["explain", "exec"], NOTHING],
    ["--namespace=x -v 6 attach ", ["pod-a", "pod-b", "other"], NOTHING],
    ["--na", ["--namespace"], NOTHING],
    ["-n ", ["namespace-a", "namespace-b", "other"], NOTHING],
    ["nonsense ", [], NOTHING],
    ["exec --co", ["--container", "--context"], NOTHING],
    ["exec --nope", [], NOTHING],
    ["exec pod-", ["pod-a", "pod-b"], NOTHING],
    ["exec -it pod-", ["pod-a", "pod-b"], NOTHING],
    ["exec -n x -c main pod-", ["pod-a", "pod-b"], NOTHING],
    ["exec web --container c", ["container-a", "container-b"], NOTHING],
    ["exec web -itc c", ["container-a", "container-b"], NOTHING],
    ["exec web --context=context-b", ["--context=context-b"], NOTHING],
    ["exec --kubeconfig=", [], FILES],
    ["exec --kubeconfig ", [], FILES],
    ["exec web -- l", [], FILES],
    ["exec -n -- l", [], FILES],
    ["attach web x", [], NOTHING],
    ["port-forward svc", [], NOTHING],
    ["cp ", [], FILES],
    ["demo --dir ", [], FOLDERS],
    ["serve --audit-webhook-mode b", ["batch", "blocking", "blocking-strict"], NOTHING],
    ["serve --audit-webhook-mode=blocking-", ["--audit-webhook-mode=blocking-strict"], NOTHING],
    ["serve --tls-cert-file ", [], FILES],
    ["load ex", ["exec"], NOTHING],
    ["load exec pod-", ["pod-a", "pod-b"], NOTHING],
    ["load --gen", [], NOTHING],
    ["completion ", ["bash", "zsh", "fish", "powershell"], NOTHING],
  ])("sluice %s", async (line, texts, directive) => {
    const found = await complete(line.split(" "), names);
    expect([found.candidates.map(({ text }) => text), found.directive]).toEqual([texts, directive]);
  });

  it("offers every command with its summary", async () => {
    const { candidates } = await complete([""], names);
    expect(candidates).toEqual(COMMANDS.map(({ name, summary }) => ({ text: name, description: summary })));
  });

  it.each(COMMANDS)("offers every flag of $name for people, with its help", async ({ name, load }) => {
    const { flags } = (await load()).command;
    const { candidates } = await complete([name, "-"], names);
    const shown = Object.entries(flags).filter(
      ([flag, { isHidden }]) => isHidden !== true && flag.length > 1,
    );
    expect(candidates).toEqual(
      [...shown, ["help", { help: "show this help" }] as const].map(([flag, { help }]) => ({
        text: `--${flag}`,
        description: help,
      })),
    );
  });
});
