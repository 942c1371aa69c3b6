import { setTimeout as delay } from "node:timers/promises";
import { ConnectError, type PortForwardConnection, SessionError } from "../client/index.ts";
import type { CaseLab } from "./case-lab.ts";
import { PROGRAMS, type Program } from "./conformance-case.ts";
import { COMMAND_TRANSPORTS, FORWARD_TRANSPORTS, type Transport } from "./transports.ts";

/** What an endpoint and its container have, found out once, before any case runs. */
export interface Survey {
  /** Why each transport was refused; undefined: it was accepted. */
  readonly transports: Readonly<Partial<Record<Transport, string>>>;
  /** What the container has; undefined where no command could be run. */
  readonly programs: ReadonlySet<Program> | undefined;
  /** Why nothing can listen on the port that should echo: the server itself said so, over each transport. */
  readonly echoProblem?: string | undefined;
}

const BUSY_STATUSES: readonly number[] = [429, 503];
const ATTEMPTS = 5;
const RETRY_MS = 300;
/** In one write, so that a hop that spoils the borders of messages leaves the names whole. */
const LIST_PROGRAMS = `for one in ${PROGRAMS.join(" ")}; do command -v $one >/dev/null && all="$all $one"; done; echo "$all "`;

export async function surveyEndpoint(lab: CaseLab): Promise<Survey> {
  const transports: Partial<Record<Transport, string>> = {};
  let programs: Set<Program> | undefined;
  for (const transport of COMMAND_TRANSPORTS) {
    const session = await opened(() => lab.shell(transport, LIST_PROGRAMS));
    if (typeof session === "string") {
      transports[transport] = session;
      continue;
    }
    await lab.within("the list of programs", session.ended).catch(() => {});
    for (const name of PROGRAMS) {
      if (!session.stdout.text.includes(` ${name} `)) continue;
      programs ??= new Set();
      programs.add(name);
    }
    if (!session.isOver) session.abort();
  }
  const refusals: (string | undefined)[] = [];
  for (const transport of FORWARD_TRANSPORTS) {
    const connection = await opened(() => lab.forward(transport));
    if (typeof connection === "string") {
      transports[transport] = connection;
      continue;
    }
    if (lab.settings.echoPort !== undefined)
      refusals.push(await refusalOf(lab, connection, lab.settings.echoPort));
    connection.close();
  }
  // What goes wrong in any other way is a case's to report.
  const [echoProblem] = refusals.every((refusal) => refusal !== undefined) ? refusals : [];
  return { transports, programs, echoProblem };
}

/** What the server says of a port that nothing listens on; undefined for anything else. */
async function refusalOf(
  lab: CaseLab,
  connection: PortForwardConnection,
  port: number,
): Promise<string | undefined> {
  const stream = connection.openStream(port);
  const told = new Promise<string | undefined>((resolve) => {
    stream.once("data", () => resolve(undefined));
    stream.once("close", () => resolve(undefined));
    stream.once("error", (error: Error) => {
      const isRefusal = error instanceof SessionError && error.code === "remote-failure";
      resolve(isRefusal && /refused|unreachable/i.test(error.message) ? error.message : undefined);
    });
  });
  stream.on("error", () => {}).write("echo?");
  const refusal = await lab.within("the echo", told).catch(() => undefined);
  stream.destroy();
  return refusal;
}

/** What was opened, or why not. An endpoint that is busy is asked again: the connection before may not be gone yet. */
async function opened<T>(open: () => Promise<T>): Promise<T | string> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await open();
    } catch (error) {
      const isBusy = error instanceof ConnectError && BUSY_STATUSES.includes(error.httpStatus ?? 0);
      if (!isBusy || attempt === ATTEMPTS) return error instanceof Error ? error.message : String(error);
      await delay(RETRY_MS);
    }
  }
}
