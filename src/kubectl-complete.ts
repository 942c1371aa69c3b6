#!/usr/bin/env node
// kubectl asks a program of this name for candidates behind `kubectl sluice` (kubectl_complete-sluice in $PATH).
import { runCommandLine } from "./cli/command-line.ts";

void runCommandLine(["__complete", ...process.argv.slice(2)]).then((code) => {
  process.exitCode = code;
});
