import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { runCommandLine } from "../../../src/cli/command-line.ts";
import { COMMANDS } from "../../../src/cli/command-list.ts";
import { sluiceCommand } from "../../support/built-program.ts";
import { publishSection } from "../../support/evidence-sections.ts";
import { evidenceTable } from "../../support/evidence-table.ts";
import { Sluice, type SluiceResult } from "../../support/sluice.ts";

const ENVIRONMENT = { KUBECONFIG: "/nonexistent/kubeconfig", HOME: "/nonexistent" };
const sluice = new Sluice(ENVIRONMENT);
beforeEach(() => {
  for (const [name, value] of Object.entries(ENVIRONMENT)) vi.stubEnv(name, value);
});
afterEach(() => {
  vi.unstubAllEnvs();
});
/** They run without arguments, until they are stopped. */
const LONG_LIVED = ["demo", "agent"];

/** A command's first line each, for docs/evidence/first-hour.md. */
const answers = new Map<string, Record<"none" | "flag" | "operand", string>>();
const firstLine = (text: string): string => (text.split("\n")[0] ?? "").replaceAll("|", "\\|");

afterAll(() => {
  const rows = Array.from(answers, ([name, { none, operand }]) => [`\`${name}\``, none, operand]);
  const flags = new Set(Array.from(answers.values(), ({ flag }) => flag));
  const text = `To \`--no-such-flag\` each says: ${[...flags].join("; ")}.

${evidenceTable(["sluice", "without arguments", "with too many operands"], rows, [0])}
`;
  publishSection("first-hour.md", "Every command, called wrongly", text);
});

function note(name: string, call: "none" | "flag" | "operand", text: string): void {
  const row = answers.get(name) ?? { none: "", flag: "", operand: "" };
  const shown = firstLine(text).replace(`sluice ${name}: `, "");
  answers.set(name, { ...row, [call]: shown });
}

/** The same as `sluice.run` in this process: starting one takes longer than the command does. */
async function runHere(args: readonly string[]): Promise<SluiceResult> {
  const written = { stdout: "", stderr: "" };
  const spies = (["stdout", "stderr"] as const).map((stream) =>
    vi.spyOn(process[stream], "write").mockImplementation((part) => {
      written[stream] += part;
      return true;
    }),
  );
  try {
    return { exitCode: await runCommandLine(args), ...written };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

async function expectUsageError(
  args: readonly string[],
  name: string,
  run: (args: readonly string[]) => Promise<SluiceResult> = runHere,
): Promise<string> {
  const { exitCode, stdout, stderr } = await run(args);
  expect([args, exitCode, stdout]).toEqual([args, 2, ""]);
  expect(stderr).toMatch(
    new RegExp(`^sluice ${name}: .+\n(.*\n)*See 'sluice ${name} --help' for usage\\.\n$`),
  );
  expect(stderr).not.toMatch(/undefined|\[object|NaN|\n {4}at /);
  return stderr;
}

describe.each(COMMANDS.map(({ name, load }) => ({ name, load })))("sluice $name", ({ name, load }) => {
  it("names the nearest flag of one that is not there", async () => {
    const { command } = await load();
    const known = Object.keys(command.flags).find(
      (flag) => flag.length > 4 && !command.flags[flag]?.isHidden,
    );
    expect(await expectUsageError([name, "--no-such-flag-at-all"], name)).toContain(
      "unknown flag: --no-such-flag-at-all",
    );
    note(name, "flag", await expectUsageError([name, "--no-such-flag"], name));
    if (known === undefined) return;
    expect(await expectUsageError([name, `--${known}x`], name)).toContain(`did you mean --${known}?`);
  });

  it("refuses operands that it does not describe, and one more than it takes", async () => {
    const { command } = await load();
    const required = Object.entries(command.flags).flatMap(([flag, { isRequired, value }]) =>
      isRequired ? (value === undefined ? [`--${flag}`] : [`--${flag}`, "x"]) : [],
    );
    if (command.operands === undefined) {
      const stderr = await expectUsageError([name, ...required, "stray"], name);
      expect(stderr).toContain('unexpected argument "stray"');
      for (const line of command.usage) expect(stderr).toContain(`  sluice ${name} ${line}\n`);
      await expectUsageError([name, ...required, "--", "stray"], name);
    }
    // Its operands are files, as many as are given.
    if (name === "check-config") return note(name, "operand", "takes any number of files");
    // Ports have numbers or names, as many as are given.
    if (name === "port-forward") return note(name, "operand", "takes any number of ports");
    const many = Array.from({ length: 9 }, (_, index) => `stray${index}`);
    note(name, "operand", await expectUsageError([name, ...required, ...many], name));
  });

  it("names each required flag that is missing, and as a program what is missing without arguments", async () => {
    const { command } = await load();
    const required = Object.entries(command.flags).filter(([, { isRequired }]) => isRequired);
    for (const [flag, { short, value }] of required) {
      const others = required.filter(([other]) => other !== flag);
      const given = others.flatMap(([other, row]) =>
        row.value === undefined ? [`--${other}`] : [`--${other}`, "x"],
      );
      const typed = short === undefined ? `--${flag}` : `-${short}`;
      expect(await expectUsageError([name, ...given], name)).toContain(
        `${value === undefined ? typed : `${typed} ${value}`} is required`,
      );
      if (value === undefined) await expectUsageError([name, ...given, `--${flag}=false`], name);
    }
    const asProgram = (args: readonly string[]) => sluice.run(args);
    if (!LONG_LIVED.includes(name)) note(name, "none", await expectUsageError([name], name, asProgram));
    else {
      note(name, "none", "runs until it is stopped");
      await expectUsageError([name, "--no-such-flag"], name, asProgram);
    }
  });

  it("refuses a flag without its value, and a value that is none of its choices", async () => {
    const { command } = await load();
    const valued = Object.entries(command.flags).find(([, { value }]) => value !== undefined)?.[0];
    if (valued !== undefined) await expectUsageError([name, `--${valued}`], name);
    const chosen = Object.entries(command.flags).find(([, { choices }]) => choices !== undefined)?.[0];
    if (chosen !== undefined) await expectUsageError([name, `--${chosen}`, "none of them"], name);
    const toggle = Object.entries(command.flags).find(([, { value }]) => value === undefined)?.[0];
    if (toggle !== undefined) await expectUsageError([name, `--${toggle}=perhaps`], name);
  });
});

it.each([
  [["check-config"], "-f FILE is required"],
  [["serve", "sluice.yaml"], "did you mean --config sluice.yaml?"],
  [["install"], "--dry-run is required"],
  [["conformance"], "--pod NAMESPACE/NAME[/CONTAINER] is required"],
  [["conformance", "--list", "--json", "x"], "--json"],
  [["load", "http", "/", "--", "command"], "unexpected"],
  [["explain", "--config", "x", "exec", "default/web", "--group", "dev"], "--as"],
  [["explain", "exec", "web"], "kubectl get configmap -n sluice sluice-gateway"],
  [["explain", "--config", "x", "exce", "web"], 'did you mean "exec"?'],
  [["explain", "--config", "x", "portforwrd", "web"], 'did you mean "portforward"?'],
  [["explain", "--config", "x", "run", "web"], "use exec, attach or portforward"],
  [["explain", "--config", "x", "-n", "a", "exec", "b/web"], "different namespaces"],
  [["explain", "--config", "x", "--as", "a", "--user", "b", "exec", "web"], "different users"],
  [["explain", "--config", "x", "node/one", "--as", "jane"], "--as does not apply"],
  [["explain", "--config", "x", "node/one", "-c", "main"], "--container"],
] as const)("%j: the nearest right line", async (args, words) => {
  expect(await expectUsageError(args, args[0])).toContain(words);
});

it("a version with more words is refused", async () => {
  expect((await sluice.run(["version", "extra"])).exitCode).toBe(2);
});

it("a demo's folder with a file of the user's is refused, and the file stays", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-mine-"));
  try {
    writeFileSync(path.join(folder, "kubeconfig"), "mine");
    expect(await expectUsageError(["demo", "--dir", folder], "demo")).toContain(
      `${folder}/kubeconfig is there already`,
    );
    expect(readFileSync(path.join(folder, "kubeconfig"), "utf8")).toBe("mine");
    expect(readdirSync(folder)).toEqual(["kubeconfig"]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

describe("output that nobody reads", () => {
  it.each([
    [["conformance", "--list"]],
    [["config", "schema"]],
    [["--help"]],
    [["load", "--help"]],
    [["install", "--dry-run"]],
    [["completion", "bash"]],
  ])("%j ends with 141 and no trace", async (args) => {
    const child = spawn(...sluiceCommand(...args), { stdio: ["ignore", "pipe", "pipe"] });
    // The reader is gone before the first byte.
    child.stdout?.destroy();
    let stderr = "";
    child.stderr?.on("data", (part) => (stderr += part));
    const [exitCode] = await once(child, "close");
    expect([exitCode, stderr]).toEqual([141, ""]);
  });
});

describe("a password in a URL", () => {
  const long = `hunter2${"x".repeat(100)}`;
  it.each([
    ["exec", "web", "--server", "http://jane:hunter2@host", "--", "ls"],
    ["exec", "web", "--server", "jane:hunter2@host:80", "--", "ls"],
    ["exec", "web", "--server", `http://jane:${long}@host`, "--", "ls"],
    ["exec", "web", "--server", "http://jane:hunter2@ho st", "--", "ls"],
    ["load", "http", "http://jane:hunter2@host/"],
    ["load", "exec", "web", "--server", "ftp://jane:hunter2@host"],
    ["probe", "ftp://jane:hunter2@host"],
    ["probe", `grpc://jane:${long}@host:99999`],
    ["recordings", "list", "https://jane:hunter2@host"],
    ["version", `https://jane:${long}@host`],
  ])("is not repeated by the error of %s %s %s", async (...args) => {
    const { exitCode, stdout, stderr } = await runHere(args);
    expect(exitCode).toBe(2);
    expect(stdout + stderr).not.toMatch(/hunter2|xxxxxx/);
  });
});
