import { closeAfterServer } from "../close-after-server.ts";
import type { ProbeDeadline } from "../probe-deadline.ts";
import { DeadlineError, ExchangeError } from "../probe-result.ts";
import type { ProbeSocket } from "../probe-socket.ts";
import type { HttpRequest } from "./http-request.ts";
import { BODY_DEADLINE_TEXT, Http1Response, type HttpReply } from "./http1-response.ts";

/**
 * Sends one GET with `Connection: close` and closes the socket. Rejects with ExchangeError or
 * DeadlineError before a status arrives.
 */
export function exchangeHttp1(
  socket: ProbeSocket,
  request: HttpRequest,
  deadline: ProbeDeadline,
): Promise<HttpReply> {
  return new Promise((resolve, reject) => {
    const response = new Http1Response();
    const settle = (): void => {
      forgetDeadline();
      if (response.isWhole) closeAfterServer(socket);
      else socket.destroy();
    };
    const attempt = (read: () => HttpReply | undefined): void => {
      try {
        const reply = read();
        if (reply === undefined) return;
        settle();
        resolve(reply);
      } catch (error) {
        if (!(error instanceof ExchangeError)) throw error;
        fail(error);
      }
    };
    const fail = (error: Error): void => {
      settle();
      // An unreadable body makes the round an error, not a failure.
      if (response.hasHead) resolve(response.reply(error.message));
      else reject(error);
    };
    const forgetDeadline = deadline.onOver(() =>
      fail(response.hasHead ? new ExchangeError(BODY_DEADLINE_TEXT) : new DeadlineError()),
    );
    socket.hear({
      onOpen: () => {},
      onData: (chunk) => attempt(() => (response.push(chunk) ? response.reply() : undefined)),
      onEnd: () => attempt(() => response.end()),
      onError: (error) => fail(new ExchangeError(socket.textOf(error), { cause: error })),
    });
    socket.write(request.http1Text);
  });
}
