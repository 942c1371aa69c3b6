import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sluiceFile } from "../../../support/built-program.ts";
import { type RunningDemo, startDemo } from "../../../support/demo.ts";
import { Sluice } from "../../../support/sluice.ts";

let demo: RunningDemo;
let sluice: Sluice;
let folder: string;

beforeAll(async () => {
  demo = await startDemo();
  sluice = new Sluice({ KUBECONFIG: demo.kubeconfig });
  folder = mkdtempSync(path.join(tmpdir(), "sluice-completion-"));
  symlinkSync(sluiceFile(), path.join(folder, "sluice"));
  writeFileSync(path.join(folder, "settings.yaml"), "");
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await demo.stop();
});

describe("sluice __complete", () => {
  it.each([
    [["exec", "w"], "web\nweb-ws\n:4\n"],
    [["exec", "web", "-c", ""], "main\n:4\n"],
    [["-n", "default", "exec", "web-"], "web-ws\n:4\n"],
    [["exec", "--context", ""], "sluice-demo\n:4\n"],
    [["exec", "-s", "https://127.0.0.1:1", "w"], ":4\n"],
    [["exec", "--kubeconfig", "/nowhere/config", "w"], ":4\n"],
    [["exec", "--nope", "w"], ":4\n"],
  ])("%j", async (words, stdout) => {
    // A shell's user does not wait for a slow cluster, and a busy machine is one.
    const answer = () => sluice.run(["__complete", ...words]);
    await expect.poll(answer, { timeout: 20_000 }).toEqual({ exitCode: 0, stdout, stderr: "" });
  });
});

/** What a shell offers for the last word of a line, sorted. */
type Offer = (line: string) => readonly string[];

const environment = () => ({
  ...process.env,
  PATH: `${folder}:${process.env.PATH}`,
  HOME: folder,
  KUBECONFIG: demo.kubeconfig,
});

function run(program: string, script: string, ...args: string[]): string[] {
  const text = execFileSync(program, ["-c", script, program, ...args], {
    env: environment(),
    cwd: folder,
    encoding: "utf8",
  });
  return text
    .split("\n")
    .filter((line) => line !== "")
    .sort();
}

/** Bash's own readline asks the function by these variables. */
const bash: Offer = (line) =>
  run(
    "bash",
    `source <(sluice completion bash); COMP_LINE=$1 COMP_POINT=\${#1}; _sluice 2>&1; printf '%s\\n' "\${COMPREPLY[@]}"`,
    line,
  );
const fish: Offer = (line) =>
  run("fish", "sluice completion fish | source; complete -C $argv[2]", line).map((text) =>
    text.replace(/\t.*/, ""),
  );
/** Without a line editor: the functions that would show candidates print them. */
const zsh: Offer = (line) =>
  run(
    "zsh",
    `compdef() {}; source <(sluice completion zsh)
     _describe() { print -l -- \${(P)2%%:*} }; _files() { print -l -- * }; compset() {}
     words=("\${(@s: :)1}"); CURRENT=\${#words}; _sluice`,
    line,
  );

/** PowerShell's own completion of a line, with the completer of the script. */
const pwsh: Offer = (line) =>
  run(
    "pwsh",
    `& { sluice completion powershell | Out-String | Invoke-Expression
     [System.Management.Automation.CommandCompletion]::CompleteInput('${line}', ${line.length}, $null).CompletionMatches.CompletionText }`,
  );

describe.each([
  ["bash", bash],
  ["zsh", zsh],
  ["fish", fish],
  ["pwsh", pwsh],
])("in %s", (shell, offer) => {
  const [isMissing, reason] = [!isInstalled(shell), `${shell} is not installed`];

  it.for<[line: string, offers: string[]]>([
    ["sluice exe", ["exec"]],
    ["sluice exec --contex", ["--context"]],
    ["sluice exec w", ["web", "web-ws"]],
    ["sluice -n default exec web-", ["web-ws"]],
    ["sluice load --direction ", ["download", "echo", "upload"]],
    ["sluice fake-node --name ", []],
  ])("%s", ([line, offers], { skip }) => {
    skip(isMissing, reason);
    expect(offer(line)).toEqual(offers);
  });

  it("files where the value is one", ({ skip }) => {
    skip(isMissing, reason);
    const offered = offer("sluice serve --config s");
    // Bash's readline adds them itself.
    expect(offered).toEqual(shell === "bash" ? [] : expect.arrayContaining(["settings.yaml"]));
  });
});

function isInstalled(program: string): boolean {
  try {
    execFileSync(program, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
