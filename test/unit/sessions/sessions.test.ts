import { expect, it } from "vitest";
import { type RunningSession, Sessions } from "../../../src/sessions/sessions.ts";

const MILLISECOND_OF_WORK = 1;

/** Its end takes a millisecond, as that of a TLS connection with a last message does. */
function slowToEnd(sessions: Sessions, ended: (session: RunningSession) => void): RunningSession {
  const session = {
    cut() {
      const endMs = performance.now() + MILLISECOND_OF_WORK;
      while (performance.now() < endMs);
      sessions.delete(session);
      ended(session);
    },
  } as unknown as RunningSession;
  sessions.add(session);
  return session;
}

it("endAll gives others a turn between sessions, and ends those that began", async () => {
  const sessions = new Sessions(200);
  let ended = 0;
  const endedAtTurns: number[] = [];
  const turn = (): void => {
    endedAtTurns.push(ended);
    if (ended < 200) setImmediate(turn);
  };
  for (let index = 0; index < 200; index += 1) slowToEnd(sessions, () => (ended += 1));
  setImmediate(turn);
  await sessions.endAll("bye");
  expect(ended).toBe(200);
  expect(endedAtTurns[0]).toBeLessThan(20);
  expect(endedAtTurns.length).toBeGreaterThan(10);
});

it("endAll does not end a session that ended while it waited for its turn", async () => {
  const sessions = new Sessions(20);
  const ended: RunningSession[] = [];
  const first = slowToEnd(sessions, (session) => {
    ended.push(session);
    sessions.delete(last);
  });
  const last = slowToEnd(sessions, (session) => ended.push(session));
  await sessions.endAll("bye");
  expect(ended).toEqual([first]);
});
