import { describe, expect, it } from "vitest";
import { UsageError } from "../../../src/cli/command.ts";
import { parseFlags } from "../../../src/cli/parse-flags.ts";
import type { FlagTable } from "../../../src/config/flag.ts";

const flags = {
  namespace: { short: "n", value: "NAME", help: "the namespace" },
  stdin: { short: "i", help: "pass standard input" },
  tty: { short: "t", help: "a terminal" },
  v: { short: "v", value: "LEVEL", help: "details", parse: Number },
  mode: { value: "MODE", help: "a mode", choices: ["a", "b"], default: "a" },
  format: { value: "FORMAT", help: "a format", choices: ["text", "json", "yaml"] },
  dialect: { value: "DIALECT", help: "a dialect", choices: ["v1"] },
  port: { value: "PORT", help: "a port", parse: portOf, isRepeatable: true },
  secret: { help: "not for people", isHidden: true },
} as const satisfies FlagTable;

function portOf(text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  throw new RangeError("must be a port");
}

const none = {
  namespace: undefined,
  stdin: false,
  tty: false,
  v: undefined,
  mode: "a",
  port: [],
  secret: false,
};

describe("parseFlags", () => {
  it.each([
    [["-n", "ns"], { namespace: "ns" }],
    [["-nns"], { namespace: "ns" }],
    [["-n=ns"], { namespace: "ns" }],
    [["--namespace=a=b"], { namespace: "a=b" }],
    [["--namespace", "-x"], { namespace: "-x" }],
    [["--namespace", "a", "--namespace", "b"], { namespace: "b" }],
    [["-it"], { stdin: true, tty: true }],
    [["-itn", "ns"], { stdin: true, tty: true, namespace: "ns" }],
    [["-i=false", "--tty=true"], { tty: true }],
    [["--stdin", "--stdin=F"], {}],
    [["-v=6"], { v: 6 }],
    [["-v6"], { v: 6 }],
    [["--v", "6"], { v: 6 }],
    [["--mode", "b"], { mode: "b" }],
    [["--port", "1", "--port=2"], { port: [1, 2] }],
  ])("%j", (args, values) => {
    expect(parseFlags({ flags }, args)).toEqual({ operands: [], values: { ...none, ...values } });
  });

  it("flags and operands mix; a dash alone is an operand", () => {
    const { operands, values } = parsed(["web", "-n", "ns", "-", "8080:80", "-i"]);
    expect([operands, values]).toEqual([["web", "-", "8080:80"], { ...none, namespace: "ns", stdin: true }]);
  });

  it("what follows -- is a command, or operands where none is taken", () => {
    const args = ["web", "--", "ls", "-n", "x", "--", "--help"];
    const { operands, command, values } = parsed(args, true);
    expect([operands, command, values]).toEqual([["web"], ["ls", "-n", "x", "--", "--help"], none]);
    expect(parsed(args)).toEqual({ operands: ["web", "ls", "-n", "x", "--", "--help"], values: none });
  });

  it.each([
    ["--help"],
    ["-h"],
    ["-ih"],
    ["--nonsense", "-h"],
    ["--mode", "c", "--help"],
  ])("%s asks for help", (...args) => {
    expect(parseFlags({ flags }, args)).toBe("help");
  });

  it.each([
    [["--unheard-of"], "unknown flag: --unheard-of"],
    [["--name-space", "x"], "unknown flag: --name-space; did you mean --namespace?"],
    [["--secrets"], "unknown flag: --secrets"],
    [["-z"], "unknown shorthand flag: -z"],
    [["-iz"], "unknown shorthand flag: -z"],
    [["--constructor"], "unknown flag: --constructor"],
    [["--namespace"], "flag needs an argument: --namespace NAME"],
    [["-n"], "flag needs an argument: --namespace NAME"],
    [["--stdin=yes"], "--stdin=yes: must be true or false"],
    [["--mode", "c"], "--mode c: must be a or b"],
    [["--format", "c"], "--format c: must be text, json or yaml"],
    [["--dialect", "v2"], "--dialect v2: must be v1"],
    [["--port", "http"], "--port http: must be a port"],
    [["--port", "x".repeat(1_000)], `--port ${"x".repeat(80)}: must be a port`],
  ])("%j is refused", (args, message) => {
    expect(() => parseFlags({ flags }, args)).toThrow(new UsageError(message));
  });

  it("a required flag is", () => {
    const config = { value: "FILE", help: "a file", isRequired: true } as const;
    expect(() => parseFlags({ flags: { config } }, [])).toThrow("--config FILE is required");
    expect(parseFlags({ flags: { config } }, ["--config", ""])).toMatchObject({ values: { config: "" } });
  });
});

function parsed(args: readonly string[], takesCommand?: true) {
  const invocation = parseFlags({ flags, ...(takesCommand && { takesCommand }) }, args);
  if (invocation === "help") throw new Error("help was asked for");
  return invocation;
}
