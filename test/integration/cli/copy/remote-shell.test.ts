import { withRetries } from "@sluice/client/internal/copy/copy-error";
import { expect, it } from "vitest";
import { RemoteShell } from "../../../../packages/client/src/copy/remote-shell.ts";
import { SessionError } from "../../../../packages/client/src/sessions/session-error.ts";

it("an abort ends the commands of a copy, and lets it clean up", async () => {
  const { signal } = new AbortController();
  const signals: (AbortSignal | undefined)[] = [];
  const shell = new RemoteShell(async (_command, streams) => {
    signals.push(streams.signal);
    return { exitCode: 0 };
  }, signal);
  await shell.mustRun("copy", []);
  await shell.cleanUp("rm", []);
  expect(signals).toEqual([signal, undefined]);
});

it("an abort ends the wait before the next attempt, whose error is thrown", async () => {
  const ended = new AbortController();
  const attempt = async (): Promise<never> => {
    if (ended.signal.aborted) throw new SessionError("aborted", "context canceled");
    ended.abort();
    throw new SessionError("connection-lost", "cut");
  };
  const options = { retries: 5, progress: () => 0, note: () => {}, signal: ended.signal };
  await expect(withRetries(attempt, options)).rejects.toMatchObject({ code: "aborted" });
});
