import { Agent, get } from "node:http";
import type { ClientHttp2Session } from "node:http2";
import { text } from "node:stream/consumers";
import { ask, connectHttp2 } from "./http2-client.ts";

/** A request's outcome for its client: status and body, or the error's code. */
export type Outcome = readonly [status: number, body: string] | string;

const PATHS = ["/late", "/begun"];

/** Sends this many HTTP/1.1 GETs, each on a connection of its own that it would keep open. */
export function http1Requests(port: number, count: number): Promise<Outcome>[] {
  return Array.from({ length: count }, (_, index) => {
    const agent = new Agent({ keepAlive: true });
    return new Promise<Outcome>((resolve) => {
      get({ host: "127.0.0.1", port, agent, path: PATHS[index % 2] }, (response) => {
        text(response).then(
          (body) => resolve([response.statusCode ?? 0, body]),
          (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message),
        );
      }).on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    }).finally(() => agent.destroy());
  });
}

/** Sends this many HTTP/2 GETs, four to a connection. */
export async function http2Requests(
  port: number,
  count: number,
): Promise<{ readonly sessions: ClientHttp2Session[]; readonly outcomes: Promise<Outcome>[] }> {
  const sessions = await Promise.all(
    Array.from({ length: count / 4 }, () => connectHttp2(`http://127.0.0.1:${port}`)),
  );
  const outcomes = Array.from({ length: count }, async (_, index): Promise<Outcome> => {
    const session = sessions[index % sessions.length] as ClientHttp2Session;
    const { status, body, rstCode } = await ask(session, PATHS[index % 2] as string);
    return rstCode === 0 ? [status, body] : `RST_STREAM ${rstCode}`;
  });
  return { sessions, outcomes };
}
