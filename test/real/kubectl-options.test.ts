import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/command-list.ts";
import { describeReal, kubectls } from "../support/real-parts.ts";

/** Of kubectl's log library, for its files. kubectl 1.26 removed them. */
const OF_OLD_LOGS = [
  "add-dir-header",
  "alsologtostderr",
  "log-backtrace-at",
  "log-dir",
  "log-file",
  "log-file-max-size",
  "logtostderr",
  "one-output",
  "skip-headers",
  "skip-log-headers",
  "stderrthreshold",
];
const COMMANDS_OF_KUBECTL = ["exec", "attach", "cp", "port-forward", "logs"];

describeReal("kubectl", "every flag of kubectl's is a flag here", () => {
  const all = kubectls();
  const compared = all.length > 1 ? [all.at(0), all.at(-1)] : all;
  for (const kubectl of compared) {
    if (kubectl === undefined) continue;
    it.each(COMMANDS_OF_KUBECTL)(`${kubectl.version}: %s`, async (name) => {
      const help = (args: readonly string[]) => execFileSync(kubectl.path, args, { encoding: "utf8" });
      const wanted = [...flagsIn(help([name, "--help"])), ...flagsIn(help(["options"]))];
      expect(wanted.length).toBeGreaterThan(20);
      const listed = COMMANDS.find((command) => command.name === name);
      const { command } = (await listed?.load()) ?? expect.unreachable(name);
      const ours = Object.entries(command.flags).map(([long, { short }]) => `${short ?? ""} ${long}`);
      const missing = wanted.filter((flag) => !ours.includes(flag) && !OF_OLD_LOGS.includes(flag.trim()));
      expect(missing).toEqual([]);
    });
  }
});

/** As `SHORT LONG`, from lines such as `    -c, --container='':`. */
function flagsIn(help: string): string[] {
  return Array.from(
    help.matchAll(/^ {2,8}(?:-(\w), )?--([\w-]+)=/gm),
    ([, short = "", long]) => `${short} ${long}`,
  );
}
