import { expect, it } from "vitest";
import { StartQueue } from "../../../src/probes/threads/start-queue.ts";

/** What was started, and the turns that wait. */
function queue(perTurn: number) {
  const started: number[] = [];
  const turns: (() => void)[] = [];
  const waiting = new StartQueue<number>(
    perTurn,
    (run) => started.push(run),
    (turn) => turns.push(turn),
  );
  return { waiting, started, turn: () => turns.shift()?.(), turns };
}

it("starts a few in each turn, in order, and those that came meanwhile behind them", () => {
  const { waiting, started, turn, turns } = queue(2);
  waiting.add([1, 2, 3]);
  expect(started).toEqual([1, 2]);
  waiting.add([4, 5]);
  expect(started).toEqual([1, 2]);
  turn();
  expect(started).toEqual([1, 2, 3, 4]);
  turn();
  expect(started).toEqual([1, 2, 3, 4, 5]);
  expect(turns).toEqual([]);
});

it("begins at once again when it had nothing left, and does nothing for nothing", () => {
  const { waiting, started, turns } = queue(2);
  waiting.add([]);
  waiting.add([1]);
  waiting.add([]);
  waiting.add([2]);
  expect(started).toEqual([1, 2]);
  expect(turns).toEqual([]);
});
