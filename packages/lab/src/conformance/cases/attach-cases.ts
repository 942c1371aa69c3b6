import { setTimeout as delay } from "node:timers/promises";
import { type ConformanceCase, onEach } from "../conformance-case.ts";
import { SkippedCase, Violation } from "../judge.ts";
import { COMMAND_TRANSPORTS } from "../transports.ts";

export const attachCases: readonly ConformanceCase[] = [
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
