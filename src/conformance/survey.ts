import type { CaseLab } from "./case-lab.ts";
import { PROGRAMS, type Program } from "./conformance-case.ts";
import { COMMAND_TRANSPORTS, FORWARD_TRANSPORTS, type Transport } from "./transports.ts";

/** What an endpoint and its container have, found out once, before any case runs. */
export interface Survey {
  /** Why each transport was refused; undefined: it was accepted. */
  readonly transports: Readonly<Partial<Record<Transport, string>>>;
  /** What the container has; undefined where no command could be run. */
  readonly programs: ReadonlySet<Program> | undefined;
}

const LIST_PROGRAMS = `for one in ${PROGRAMS.join(" ")}; do command -v $one >/dev/null && echo $one; done; exit 0`;

export async function surveyEndpoint(lab: CaseLab): Promise<Survey> {
  const transports: Partial<Record<Transport, string>> = {};
  let programs: Set<Program> | undefined;
  for (const transport of COMMAND_TRANSPORTS) {
    try {
      const session = await lab.shell(transport, LIST_PROGRAMS);
      await lab.within("the list of programs", session.ended).catch(() => {});
      const found = session.stdout.text.split("\n");
      const had = PROGRAMS.filter((name) => found.includes(name));
      if (had.length > 0) programs ??= new Set(had);
      if (!session.isOver) session.abort();
    } catch (error) {
      transports[transport] = textOf(error);
    }
  }
  for (const transport of FORWARD_TRANSPORTS) {
    try {
      (await lab.forward(transport)).close();
    } catch (error) {
      transports[transport] = textOf(error);
    }
  }
  return { transports, programs };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
