#!/usr/bin/env -S node --no-incremental-marking
// The flag: V8 counts the buffer of every chunk that is read from a client and, once its heap is larger than 8 MiB, marks all of it
// after some 32 MiB, although buffers die young. Without incremental marking it scavenges instead. It must be given at the start:
// V8 aborts the process when it is changed while a marking is under way.
import { runCommandLine } from "./cli/command-line.ts";

process.exitCode = await runCommandLine(process.argv.slice(2));
