import { LINE_BYTES, LineSequence } from "../../load/seeded-stream.ts";
import { type ConformanceCase, onEach } from "../conformance-case.ts";
import { COMMAND_TRANSPORTS } from "../endpoint.ts";
import { expectBytes, expectStatus } from "../judge.ts";

const STARTS = 10;
const ROUND_TRIPS = 100;
const MIB = 1024 * 1024;

export const costCases: readonly ConformanceCase[] = [
  ...onEach(COMMAND_TRANSPORTS, "cost", {
    name: "start",
    requirement: "How long it takes from the request to the end of a command that does nothing.",
    why: "Loops of short commands wait for it.",
    source: "measured, never judged",
    severity: "info",
    needs: ["sh"],
    run: async (lab, transport) => {
      const times: number[] = [];
      for (let round = 0; round < STARTS; round++) {
        const startedMs = performance.now();
        const session = await lab.shell(transport, "exit 0");
        expectStatus(await lab.within("the end of the session", session.ended), 0);
        times.push(performance.now() - startedMs);
      }
      lab.note = `median ${median(times).toFixed(1)} ms of ${STARTS}`;
    },
  }),
  ...onEach(COMMAND_TRANSPORTS, "cost", {
    name: "round-trip",
    requirement: "How long a line takes to a running command and back.",
    why: "It is what typing feels like.",
    source: "measured, never judged",
    severity: "info",
    needs: ["sh"],
    run: async (lab, transport) => {
      const session = await lab.shell(transport, 'while read line; do echo "$line"; done', { stdin: true });
      const times: number[] = [];
      for (let round = 1; round <= ROUND_TRIPS; round++) {
        const startedMs = performance.now();
        await session.write("x\n");
        await lab.within(
          "a line",
          session.stdout.until(({ byteLength }) => byteLength >= 2 * round),
        );
        times.push(performance.now() - startedMs);
      }
      lab.note = `median ${median(times).toFixed(2)} ms of ${ROUND_TRIPS}`;
    },
  }),
  ...onEach(COMMAND_TRANSPORTS, "cost", {
    name: "download",
    requirement: "How fast a large output arrives.",
    why: "kubectl cp takes so long.",
    source: "measured, never judged",
    severity: "info",
    needs: ["seq"],
    run: async (lab, transport) => {
      const byteLength = Math.ceil(lab.settings.bulkBytes / LINE_BYTES) * LINE_BYTES;
      const startedMs = performance.now();
      const session = await lab.command(transport, LineSequence.command(byteLength));
      expectStatus(await session.ended, 0);
      const seconds = (performance.now() - startedMs) / 1_000;
      expectBytes("the output", session.stdout, byteLength);
      lab.note = `${(byteLength / MIB / seconds).toFixed(1)} MiB/s`;
    },
  }),
];

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}
