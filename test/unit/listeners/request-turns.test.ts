import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { RequestTurns } from "../../../src/listeners/request-turns.ts";
import { fixedBound } from "../../support/fixed-bound.ts";

const MAX_REFUSED_ADDRESSES = fixedBound("src/listeners/request-turns.ts", "MAX_REFUSED_ADDRESSES");
const REFUSED_REQUESTS_A_TURN = fixedBound("src/listeners/request-turns.ts", "REFUSED_REQUESTS_A_TURN");
const REQUESTS_A_TURN = fixedBound("src/listeners/request-turns.ts", "REQUESTS_A_TURN");

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

it.each([
  401, 403, 429,
])("a client refused with %i begins few a turn, and holds up no other", async (status) => {
  const turns = new RequestTurns();
  const [stranger, honest] = [connectionOf("192.0.2.1"), connectionOf("192.0.2.2")];
  turns.answered(honest, 200);
  turns.answered(stranger, status);
  const begun: string[] = [];
  const take = (connection: object, name: string): void => turns.take(connection, () => begun.push(name));
  const count = 3 * REQUESTS_A_TURN;
  for (let index = 0; index < count; index += 1) take(stranger, "stranger");
  for (let index = 0; index < count; index += 1) take(honest, "honest");
  expect(begun.filter((name) => name === "stranger")).toHaveLength(REFUSED_REQUESTS_A_TURN);
  while (begun.filter((name) => name === "honest").length < count) await nextTurn();
  const before = begun.slice(0, begun.lastIndexOf("honest"));
  expect(before.filter((name) => name === "stranger").length).toBeLessThanOrEqual(
    5 * REFUSED_REQUESTS_A_TURN,
  );
  // With nothing else to begin it has the same share, until all are served.
  const was = begun.length;
  await nextTurn();
  expect(begun.length - was).toBe(REFUSED_REQUESTS_A_TURN);
  while (begun.length < 2 * count) await nextTurn();
});

it("a connection counts as others do from its first other answer on, also for what waits", async () => {
  const turns = new RequestTurns();
  const connection = connectionOf("192.0.2.1");
  turns.answered(connection, 401);
  const begun: number[] = [];
  for (let index = 0; index < REQUESTS_A_TURN + REFUSED_REQUESTS_A_TURN; index += 1)
    turns.take(connection, () => begun.push(index));
  turns.answered(connection, 200);
  await nextTurn();
  expect(begun).toEqual([...Array(REQUESTS_A_TURN + REFUSED_REQUESTS_A_TURN).keys()]);
});

it("requests that wait when their connection is refused wait among the refused, in order", async () => {
  const turns = new RequestTurns();
  const connection = connectionOf("192.0.2.1");
  const begun: number[] = [];
  const count = 2 * REQUESTS_A_TURN;
  for (let index = 0; index < count; index += 1) turns.take(connection, () => begun.push(index));
  turns.answered(connection, 429);
  turns.take(connection, () => begun.push(count));
  await nextTurn();
  expect(begun).toHaveLength(REQUESTS_A_TURN + REFUSED_REQUESTS_A_TURN);
  while (begun.length <= count) await nextTurn();
  expect(begun).toEqual([...Array(count + 1).keys()]);
});

it("a new connection counts as its network's last answer, one with an answer as its own", async () => {
  const turns = new RequestTurns();
  const known = connectionOf("2001:db8::1");
  turns.answered(known, 200);
  turns.answered(connectionOf("2001:db8::2"), 401);
  const begun: string[] = [];
  const take = (connection: object, name: string): void => turns.take(connection, () => begun.push(name));
  const next = connectionOf("2001:db8::3");
  for (let index = 0; index < REFUSED_REQUESTS_A_TURN + 1; index += 1) take(next, "new");
  for (let index = 0; index < REFUSED_REQUESTS_A_TURN + 1; index += 1) take(known, "known");
  take(connectionOf("2001:db8:0:1::1"), "other network");
  expect(begun).toEqual([
    ...Array(REFUSED_REQUESTS_A_TURN).fill("new"),
    ...Array(REFUSED_REQUESTS_A_TURN + 1).fill("known"),
    "other network",
  ]);
  await nextTurn();
  turns.answered(known, 401);
  turns.answered(known, 200);
  begun.length = 0;
  for (let index = 0; index < REFUSED_REQUESTS_A_TURN + 1; index += 1)
    take(connectionOf("2001:db8::4"), "after an accepted one");
  expect(begun).toHaveLength(REFUSED_REQUESTS_A_TURN + 1);
});

it("the addresses of an IPv6 network have one turn together", async () => {
  const turns = new RequestTurns();
  const begun: string[] = [];
  const take = (address: string): void => turns.take(connectionOf(address), () => begun.push(address));
  for (let index = 0; index < REQUESTS_A_TURN; index += 1) take("192.0.2.1");
  for (let index = 0; index < REQUESTS_A_TURN; index += 1) take(`2001:db8::${index}`);
  take("192.0.2.2");
  await nextTurn();
  expect(begun.indexOf("192.0.2.2")).toBe(REQUESTS_A_TURN + 1);
});

it("connections of exempt addresses, which carry many clients, are judged by none of these", () => {
  const turns = new RequestTurns((address) => address === "192.0.2.1");
  const proxy = connectionOf("192.0.2.1");
  turns.answered(proxy, 401);
  let begun = 0;
  for (let index = 0; index < REQUESTS_A_TURN; index += 1) turns.take(proxy, () => (begun += 1));
  expect(begun).toBe(REQUESTS_A_TURN);
});

it("so many refused addresses are known, and the one refused longest ago counts as others again", () => {
  const turns = new RequestTurns();
  const addressOf = (index: number): string => `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`;
  for (let index = 0; index < MAX_REFUSED_ADDRESSES; index += 1)
    turns.answered(connectionOf(addressOf(index)), 401);
  // The first is refused once more, so that the second is the oldest.
  turns.answered(connectionOf(addressOf(0)), 401);
  turns.answered(connectionOf(addressOf(MAX_REFUSED_ADDRESSES)), 401);
  const begunOf = (index: number): number => {
    let begun = 0;
    for (let count = 0; count < REFUSED_REQUESTS_A_TURN + 1; count += 1)
      turns.take(connectionOf(addressOf(index)), () => (begun += 1));
    return begun;
  };
  expect(begunOf(0)).toBe(REFUSED_REQUESTS_A_TURN);
  expect(begunOf(1)).toBe(REFUSED_REQUESTS_A_TURN + 1);
});
