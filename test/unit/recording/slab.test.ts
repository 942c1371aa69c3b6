import { expect, it } from "vitest";
import { partsOf, SLAB_BYTES, SlabPool, TakenSlabs } from "../../../src/recording/thread/slab.ts";

const part = (fill: number, bytes = SLAB_BYTES): Uint8Array => new Uint8Array(bytes).fill(fill);

/** Fills the current slab and gives it to a thread. */
function giveFull(pool: SlabPool, handle: number, fill: number): ArrayBufferLike {
  expect(pool.current.add(handle, "stdout", 0, part(fill))).toBe(SLAB_BYTES - 20);
  return pool.give(false).buffer;
}

const contentOf = (buffer: ArrayBufferLike): Uint8Array | undefined =>
  [...partsOf(buffer, SLAB_BYTES)][0]?.bytes;

it("memory is used again only after the thread has taken it", () => {
  const pool = new SlabPool();
  const given = Array.from({ length: 40 }, (_, fill) => giveFull(pool, 1, fill));
  for (const [fill, buffer] of given.entries())
    expect(contentOf(buffer)?.every((byte) => byte === fill)).toBe(true);
  // Sixteen are shared, and come back; the others are the thread's own.
  expect(given.filter((buffer) => buffer instanceof SharedArrayBuffer)).toHaveLength(16);
  for (let count = 0; count < 3; count++) pool.taken.add();
  const bytes: number[] = [];
  pool.back((handle, sum) => bytes.push(handle, sum));
  expect(bytes).toEqual([1, SLAB_BYTES - 20, 1, SLAB_BYTES - 20, 1, SLAB_BYTES - 20]);
  expect(pool.away).toBe(37);
  // The slab that is being filled is not one of them.
  const later = Array.from({ length: 5 }, () => giveFull(pool, 2, 99)).slice(1);
  expect(later.map((buffer) => given.indexOf(buffer))).toEqual([2, 1, 0, -1]);
  for (const [fill, buffer] of given.slice(3).entries())
    expect(contentOf(buffer)?.every((byte) => byte === fill + 3)).toBe(true);
});

it("a copy for the thread is only as large as its parts, and the slab is filled again", () => {
  const pool = new SlabPool();
  pool.current.add(7, "stderr", 3, part(1, 10));
  pool.current.add(8, "stdout", 4, part(2, 5));
  const { current } = pool;
  const { used } = current;
  const { buffer, transfer } = pool.give(true);
  expect(pool.current).toBe(current);
  current.add(9, "stdout", 5, part(3, 50));
  expect(transfer).toEqual([buffer]);
  expect(buffer.byteLength).toBe(used);
  expect([...partsOf(buffer, used)]).toEqual([
    { handle: 7, kind: "stderr", timeMs: 3, bytes: part(1, 10) },
    { handle: 8, kind: "stdout", timeMs: 4, bytes: part(2, 5) },
  ]);
  pool.taken.add();
  const bytes = new Map<number, number>();
  pool.back((handle, sum) => bytes.set(handle, sum));
  expect([...bytes]).toEqual([
    [7, 10],
    [8, 5],
  ]);
});

it("the thread tells the event loop once, when it has one slab left or none", () => {
  const pool = new SlabPool();
  expect(pool.tellSoon()).toBe(false);
  for (let fill = 0; fill < 3; fill++) giveFull(pool, 1, fill);
  expect(pool.tellSoon()).toBe(true);
  expect([1, 2, 3].map(() => pool.taken.add())).toEqual([false, true, false]);
  pool.back(() => {});
  giveFull(pool, 1, 0);
  expect(pool.tellSoon()).toBe(true);
  expect(pool.taken.add()).toBe(true);
  // The thread was faster than the question.
  expect(pool.tellSoon()).toBe(false);
});

it("sessions that wait for room hear of it long before a slow disk has taken all", () => {
  const pool = new SlabPool();
  for (let fill = 0; fill < 40; fill++) giveFull(pool, 1, fill);
  const told: number[] = [];
  for (let ask = 0; ask < 5; ask++) {
    expect(pool.tellSoon()).toBe(true);
    let taken = 1;
    while (!pool.taken.add()) taken++;
    told.push(taken);
    pool.back(() => {});
  }
  expect(told).toEqual([8, 8, 8, 8, 7]);
});

it("the count of slabs goes on from its highest number", () => {
  const numbers = new Int32Array(new SharedArrayBuffer(8));
  numbers[0] = 2 ** 31 - 1;
  const taken = new TakenSlabs(numbers);
  expect(taken.tellAt(-(2 ** 31) + 1)).toBe(true);
  expect([taken.add(), taken.add()]).toEqual([false, true]);
  expect(taken.count).toBe(-(2 ** 31) + 1);
});
