#!/usr/bin/env -S node --no-incremental-marking --max-semi-space-size=8
// src: `src/main.ts`, the program's entry

// The first flag: V8 counts the buffer of every chunk that is read from a client and, once its heap is larger than 8 MiB, marks all of it
// after some 32 MiB, although buffers die young. Without incremental marking it scavenges instead. It must be given at the start:
// V8 aborts the process when it is changed while a marking is under way. The second, in MiB: the young generation grows with what sessions
// leave when they are set up, twice over, and never shrinks; half of an idle session's memory was that.
import { runCommandLine } from "./cli/command-line.ts";

process.exitCode = await runCommandLine(process.argv.slice(2));
