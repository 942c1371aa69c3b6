import type { Socket } from "node:net";
import { brokenText, DeadlineError, ExchangeError } from "../exchange-error.ts";
import type { ProbeDeadline } from "../probe-deadline.ts";
import { BODY_DEADLINE_TEXT, type HttpReply } from "./http-reply.ts";
import { Http1Response } from "./http1-response.ts";
import type { HeaderLines } from "./probe-headers.ts";

export interface HttpRequest {
  readonly scheme: string;
  /** What Host or `:authority` says. */
  readonly authority: string;
  readonly requestTarget: string;
  readonly headers: HeaderLines;
}

/** One GET, `Connection: close`. Rejects with ExchangeError or DeadlineError while there is no status yet; the socket is closed. */
export function exchangeHttp1(
  socket: Socket,
  request: HttpRequest,
  deadline: ProbeDeadline,
): Promise<HttpReply> {
  return new Promise((resolve, reject) => {
    const response = new Http1Response();
    const settle = (): void => {
      forgetDeadline();
      socket.off("data", onData).off("end", onEnd).off("error", onError).off("close", onEnd);
      socket.destroy();
    };
    const attempt = (read: () => HttpReply | undefined): void => {
      try {
        const reply = read();
        if (reply === undefined) return;
        settle();
        resolve(reply);
      } catch (error) {
        fail(error as Error);
      }
    };
    const fail = (error: Error): void => {
      settle();
      // A body that can not be read makes the round an error, not a failure.
      if (response.hasHead) resolve(response.reply(error.message));
      else reject(error);
    };
    const onData = (chunk: Buffer): void =>
      attempt(() => (response.push(chunk) ? response.reply() : undefined));
    const onEnd = (): void => attempt(() => response.end());
    const onError = (error: Error): void =>
      fail(new ExchangeError(brokenText(error, socket), { cause: error }));
    const forgetDeadline = deadline.onOver(() =>
      fail(response.hasHead ? new ExchangeError(BODY_DEADLINE_TEXT) : new DeadlineError()),
    );
    socket.on("data", onData).on("end", onEnd).on("error", onError).on("close", onEnd);
    socket.write(requestText(request));
  });
}

function requestText({ authority, requestTarget, headers }: HttpRequest): string {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  // Go cuts a Host there.
  const host = authority.split(/[ /]/, 1)[0];
  return `GET ${requestTarget} HTTP/1.1\r\nHost: ${host}\r\n${lines}Connection: close\r\n\r\n`;
}
