import { setTimeout as delay } from "node:timers/promises";
import { type ConformanceCase, onEach } from "../conformance-case.ts";
import { COMMAND_TRANSPORTS } from "../endpoint.ts";
import { expectStatus, SkippedCase, Violation } from "../judge.ts";

const attachCases: readonly ConformanceCase[] = [
  ...onEach(COMMAND_TRANSPORTS, "attach", {
    name: "stays-open",
    requirement:
      "An attach to the running main process is accepted, stays open, and leaves the process alone when it ends.",
    why: "kubectl attach ends at once, or ends the container.",
    source: "kubernetes e2e kubectl attach; cri-streaming TestServeAttach",
    severity: "must",
    needs: [],
    run: async (lab, transport) => {
      for (const round of ["first", "second"]) {
        const session = await lab.command(transport, [], { kind: "attach" });
        const ended = await Promise.race([
          session.ended,
          delay(lab.settings.stallMs / 2, undefined, { ref: false }),
        ]);
        if (ended !== undefined) throw new Violation(`the ${round} attach ended: ${ended.error.message}`);
        session.close();
      }
    },
  }),
  ...onEach(COMMAND_TRANSPORTS, "attach", {
    name: "input",
    requirement: "Input reaches the main process, and its output comes back.",
    why: "kubectl attach -i shows nothing.",
    source: "kubernetes e2e kubectl attach -i",
    severity: "must",
    needs: [],
    run: async (lab, transport) => {
      if (!lab.settings.mayAttachInput)
        throw new SkippedCase("the main process is not written to (--attach-input)");
      const session = await lab.command(transport, [], { kind: "attach", stdin: true });
      const word = `sluice-conformance-${transport}`;
      await session.write(`${word}\n`);
      const repeated = session.stdout.until(({ text }) => text.includes(word));
      await lab.within("the repeated line", repeated);
      session.close();
    },
  }),
];

const SIZES = [
  { width: 101, height: 33 },
  { width: 57, height: 19 },
] as const;
const ASK_EVERY_MS = 200;

const ttyCases: readonly ConformanceCase[] = [
  ...onEach(COMMAND_TRANSPORTS, "exec", {
    name: "resize",
    requirement: "A terminal has the size that the client reports, at first and after each change.",
    why: "Editors and pagers draw for the wrong size.",
    source: "client-go TestWebSocketClient_MultipleWriteChannels; cri-streaming TestHandleResizeEvents",
    severity: "must",
    needs: ["sh", "stty"],
    run: async (lab, transport) => {
      const session = await lab.shell(transport, "while read x; do stty size; done", {
        stdin: true,
        tty: true,
      });
      for (const size of SIZES) {
        session.resize(size);
        // The size may arrive after the question, so the test repeats it.
        const timer = setInterval(() => void session.write("\n"), ASK_EVERY_MS);
        try {
          const text = `${size.height} ${size.width}\r\n`;
          const shown = session.stdout.until((output) => output.text.includes(text));
          await lab.within(`a terminal of ${size.width} columns and ${size.height} rows`, shown);
        } finally {
          clearInterval(timer);
        }
      }
    },
  }),
  ...onEach(COMMAND_TRANSPORTS, "exec", {
    name: "terminal",
    requirement: "With a terminal stderr arrives on stdout, and Ctrl-C interrupts the command.",
    why: "Messages of interactive programs are lost; programs cannot be stopped.",
    source: "client-go TestV2CreateStreams (tty drops stderr)",
    severity: "must",
    needs: ["sh", "sleep"],
    run: async (lab, transport) => {
      const script = "trap 'echo stopped; exit 9' INT; echo ready >&2; while :; do sleep 0.1; done";
      const session = await lab.shell(transport, script, { stdin: true, stderr: true, tty: true });
      const ready = session.stdout.until(({ text }) => text.includes("ready"));
      await lab.within("what the command wrote to stderr", ready);
      await session.write("\x03");
      expectStatus(await lab.within("the end after Ctrl-C", session.ended), 9);
      if (!session.stdout.text.includes("stopped"))
        throw new Violation("the output after Ctrl-C did not arrive");
    },
  }),
];

export const terminalCases: readonly ConformanceCase[] = [...ttyCases, ...attachCases];
