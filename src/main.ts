#!/usr/bin/env node
// src: `src/main.ts`, the program's entry
import path from "node:path";
import { runCommandLine } from "./cli/command-line.ts";

const [, program = "", ...args] = process.argv;
const SERVING: readonly (string | undefined)[] = ["serve", "demo", "worker-main"];

// The command's own listener comes with its modules, and reads what a signal before it announced.
if (args[0] === "serve" || args[0] === "worker-main") process.on("SIGHUP", () => {});

// With nothing left to do, Node would take itself apart, piece by piece, which takes milliseconds.
process.once("beforeExit", () => process.exit());

async function main(): Promise<number> {
  if (SERVING.includes(args[0])) {
    const { useGatewayFlags } = await import("./cli/gateway-flags.ts");
    useGatewayFlags();
  }
  // kubectl asks a program of this name for candidates: as a link to the single binary, or src/kubectl-complete.ts.
  if (path.basename(program) === "kubectl_complete-sluice") args.unshift("__complete");
  return await runCommandLine(args);
}

// Without `await`, which a program of one file (CommonJS) cannot have at its top.
void main().then((exitCode) => {
  process.exitCode = exitCode;
});
