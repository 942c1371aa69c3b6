import { setTimeout as delay } from "node:timers/promises";
import { ConnectError, type PortForwardConnection, SessionError } from "@sluice/client";
import type { CaseLab } from "./case-lab.ts";
import { PROGRAMS } from "./conformance-case.ts";
import { COMMAND_TRANSPORTS, FORWARD_TRANSPORTS, LEGACY_TRANSPORTS, type Transport } from "./endpoint.ts";

/** Properties of the endpoint and its container, determined once, before the cases run. */
export interface Survey {
  /** Why each transport was refused; undefined if it was accepted. */
  readonly transports: Readonly<Partial<Record<Transport, string>>>;
  /** Programs in the container; undefined if no command could run. */
  readonly programs: ReadonlySet<string> | undefined;
  /**
   * Why no server can listen on the echo port: the server itself reported it over each transport.
   */
  readonly echoProblem?: string | undefined;
}

const BUSY_STATUSES: readonly number[] = [429, 503];
const ATTEMPTS = 5;
const RETRY_MS = 300;
/** Written at once, so that a hop that breaks message boundaries keeps the names whole. */
const LIST_PROGRAMS = `for one in ${PROGRAMS.join(" ")}; do command -v $one >/dev/null && all="$all $one"; done; echo "$all "`;

export async function surveyEndpoint(lab: CaseLab): Promise<Survey> {
  const transports: Partial<Record<Transport, string>> = {};
  let programs: Set<string> | undefined;
  for (const transport of [...COMMAND_TRANSPORTS, ...LEGACY_TRANSPORTS]) {
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
  // A case will report any other fault.
  const [echoProblem] = refusals.every((refusal) => refusal !== undefined) ? refusals : [];
  return { transports, programs, echoProblem };
}

/** The server's refusal for a port without a listener; undefined for any other refusal. */
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

/**
 * The opened session, or the reason for its failure. Retries a busy endpoint, because the last
 * connection may not be closed yet.
 */
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
