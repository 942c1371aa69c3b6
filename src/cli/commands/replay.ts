import type { FlagTable } from "../../config/flag.ts";
import { defineCommand } from "../command.ts";
import { durationFrom } from "../flag-readers.ts";

const replayFlags = {
  folder: {
    value: "FOLDER",
    help: "the folder of the recordings, to name one by its session",
    completes: "folder",
  },
  speed: { short: "s", value: "N", help: "how many times as fast", default: "1", parse: speedFactor },
  idle: {
    short: "i",
    value: "DURATION",
    help: "the longest silence; 0s plays without waiting",
    parse: durationFrom(0),
  },
  raw: { help: "also pass on escape sequences that make a terminal answer, copy, or change its title" },
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: ["FILE [flags]", "--folder FOLDER ID [flags]"],
  description:
    "Plays a recording as it was shown. Space pauses it, and Ctrl-C ends it. Sequences that could attack this terminal are left out. It does not verify the recording: see sluice recordings verify.",
  operands: [
    { name: "FILE", help: "an asciicast v3 file", completes: "file" },
    { name: "ID", help: "a session's id" },
  ],
  flags: replayFlags,
  examples: [
    { title: "Twice as fast, without long silences", line: "sluice replay session.cast --speed 2 --idle 1s" },
  ],
});

function speedFactor(text: string): number {
  const value = Number(text);
  if (value >= 0.01 && value <= 1_000) return value;
  throw new RangeError("must be a number from 0.01 to 1000");
}
