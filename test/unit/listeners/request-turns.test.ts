import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { REQUESTS_A_TURN, RequestTurns } from "../../../src/listeners/request-turns.ts";

const connectionOf = (remoteAddress: string): { remoteAddress: string } => ({ remoteAddress });

it("begins so many requests a turn, and the rest in the next ones, in order", async () => {
  const turns = new RequestTurns();
  const connection = connectionOf("192.0.2.1");
  const begun: number[] = [];
  const count = 2 * REQUESTS_A_TURN + 3;
  for (let index = 0; index < count; index += 1) turns.take(connection, () => begun.push(index));
  const lengths = [begun.length];
  while (begun.length < count) {
    await nextTurn();
    lengths.push(begun.length);
  }
  expect(lengths).toEqual([REQUESTS_A_TURN, 2 * REQUESTS_A_TURN, count]);
  expect(begun).toEqual([...Array(count).keys()]);
});

it("begins requests at once again when the burst is over", async () => {
  const turns = new RequestTurns();
  const connection = connectionOf("192.0.2.1");
  let begun = 0;
  const take = (): void => turns.take(connection, () => (begun += 1));
  for (let index = 0; index < REQUESTS_A_TURN + 1; index += 1) take();
  await nextTurn();
  take();
  expect(begun).toBe(REQUESTS_A_TURN + 2);
});

it("gives each address, and within it each connection, a turn before one gets a second", async () => {
  const turns = new RequestTurns();
  const [first, second] = [connectionOf("192.0.2.1"), connectionOf("192.0.2.1")];
  const other = connectionOf("192.0.2.2");
  const begun: string[] = [];
  const take = (connection: object, name: string): void => turns.take(connection, () => begun.push(name));
  for (let index = 0; index < REQUESTS_A_TURN; index += 1) take(first, "in time");
  for (let index = 0; index < 3 * REQUESTS_A_TURN; index += 1) take(first, "first");
  take(second, "second");
  take(other, "other");
  take(other, "other");
  await nextTurn();
  const [one, two, three, four] = begun.slice(REQUESTS_A_TURN);
  expect([one, two, three, four]).toEqual(["first", "other", "second", "other"]);
  expect(begun).toHaveLength(2 * REQUESTS_A_TURN);
});

it("begins a request that a beginning one brings in a later turn", async () => {
  const turns = new RequestTurns();
  const connection = connectionOf("192.0.2.1");
  let begun = 0;
  const again = (): void => {
    begun += 1;
    if (begun < 3 * REQUESTS_A_TURN) turns.take(connection, again);
  };
  turns.take(connection, again);
  // Those that begin within one another count for their turn, too.
  expect(begun).toBeLessThanOrEqual(REQUESTS_A_TURN + 1);
  await nextTurn();
  expect(begun).toBeLessThanOrEqual(2 * REQUESTS_A_TURN + 2);
});

it("begins everything that waits when it is drained, and later requests at once", () => {
  const turns = new RequestTurns();
  const begun: number[] = [];
  for (let index = 0; index < 100; index += 1)
    turns.take(connectionOf(`192.0.2.${index % 7}`), () => begun.push(index));
  turns.drain();
  expect(begun.toSorted((a, b) => a - b)).toEqual([...Array(100).keys()]);
  turns.take(connectionOf("192.0.2.1"), () => begun.push(100));
  expect(begun).toHaveLength(101);
});
