#!/usr/bin/env node
// src: `src/main.ts`, the program's entry
import { runCommandLine } from "./cli/command-line.ts";

const args = process.argv.slice(2);

async function main(): Promise<number> {
  if (args[0] === "serve" || args[0] === "demo") {
    const { useGatewayFlags } = await import("./cli/gateway-flags.ts");
    useGatewayFlags();
  }
  return runCommandLine(args);
}

// Without `await`, which a program of one file (CommonJS) cannot have at its top.
void main().then((exitCode) => {
  process.exitCode = exitCode;
});
