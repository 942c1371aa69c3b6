import { describe, expect, it, onTestFinished, vi } from "vitest";
import { FairQueue } from "../../../src/net/fair-queue.ts";

/** The bound under test. */
const QUEUE_WAIT_MS = 15_000;

type FairQueueOptions = ConstructorParameters<typeof FairQueue>[0];

/** The names of those that were seated, in their order. */
function queueOf(options: FairQueueOptions) {
  const queue = new FairQueue(options);
  const seated: string[] = [];
  const refused: string[] = [];
  const acquire = async (flow: string, lane = "", name = flow): Promise<void> => {
    ((await queue.acquire(flow, lane)) ? seated : refused).push(name);
  };
  return { queue, seated, refused, acquire };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("a fair queue", () => {
  it("gives a free seat at once, and no more than there are", async () => {
    const queue = new FairQueue({ seats: 2, maxWaiting: 0 });
    expect([queue.acquire("a"), queue.acquire("b"), queue.acquire("c")]).toEqual([true, true, false]);
    queue.release("a");
    expect([queue.acquire("c"), queue.held]).toEqual([true, 2]);
  });

  it("gives a flow its share and no more, however many seats are free", () => {
    const queue = new FairQueue({ seats: 10, seatsPerFlow: 2, maxWaiting: 0 });
    expect([1, 2, 3].map(() => queue.acquire("greedy"))).toEqual([true, true, false]);
    expect(queue.acquire("other")).toBe(true);
  });

  it("leaves seats beside flows that take all that they can, and gives a flow its first of them", () => {
    const queue = new FairQueue({ seats: 1_000, seatsPerFlow: 250, maxWaiting: 0 });
    const held = Array.from({ length: 10 }, (_, index) => {
      let count = 0;
      while (queue.tryAcquire(`hostile ${index}`)) count += 1;
      return count;
    });
    expect(held.slice(0, 4)).toEqual([250, 188, 141, 106]);
    expect(1_000 - queue.held).toBeGreaterThanOrEqual(50);
    for (let index = 0; index < 50; index++) expect(queue.tryAcquire(`honest ${index}`)).toBe(true);
    queue.release("hostile 0");
    expect(queue.tryAcquire("hostile 0")).toBe(false);
  });

  it("seats those that wait when others leave them more", async () => {
    const { queue, seated, acquire } = queueOf({ seats: 8, seatsPerFlow: 4, maxWaiting: 10 });
    for (let index = 0; index < 4; index++) await acquire("a");
    for (let index = 0; index < 4; index++) void acquire("b");
    await settled();
    expect(seated.filter((name) => name === "b").length).toBe(2);
    for (let index = 0; index < 4; index++) queue.release("a");
    await settled();
    expect([seated.filter((name) => name === "b").length, queue.waiting]).toEqual([4, 0]);
  });

  it("gives seats that get free to those that hold the fewest", async () => {
    const { queue, seated, acquire } = queueOf({ seats: 2, maxWaiting: 100 });
    for (let index = 0; index < 50; index++) void acquire("greedy");
    for (const honest of ["a", "b", "c"]) void acquire(honest);
    for (let turn = 0; turn < 4; turn++) {
      await settled();
      queue.release(seated.at(-1) ?? "");
    }
    await settled();
    expect(seated.slice(2, 5)).toEqual(["a", "b", "c"]);
  });

  it("gives a flow's seats to its lanes in turn", async () => {
    const { queue, seated, acquire } = queueOf({ seats: 1, maxWaiting: 100 });
    await acquire("address");
    for (let index = 0; index < 20; index++) void acquire("address", "hostile", "hostile");
    void acquire("address", "honest", "honest");
    for (let turn = 0; turn < 2; turn++) {
      queue.release("address");
      await settled();
    }
    expect(seated).toEqual(["address", "hostile", "honest"]);
  });

  it("takes a place to wait from the flow that has the most of them", async () => {
    const { queue, refused, acquire } = queueOf({ seats: 1, maxWaiting: 10 });
    await acquire("greedy");
    for (let index = 0; index < 20; index++) void acquire("greedy", "", `greedy ${index}`);
    void acquire("honest");
    await settled();
    // The places that it had itself stay with those that came first.
    expect(refused).toEqual([
      ...Array.from({ length: 10 }, (_, index) => `greedy ${index + 10}`),
      "greedy 9",
    ]);
    expect(queue.waiting).toBe(10);
  });

  it("takes a place to wait from the lane that has the most of them, within one flow", async () => {
    const { refused, acquire } = queueOf({ seats: 1, maxWaiting: 10 });
    await acquire("address");
    for (let index = 0; index < 10; index++) void acquire("address", "hostile", `hostile ${index}`);
    void acquire("address", "honest", "honest");
    await settled();
    expect(refused).toEqual(["hostile 9"]);
  });

  it("lets only modest flows wait where that is asked for", async () => {
    const { queue, seated, refused, acquire } = queueOf({
      seats: 2,
      maxWaiting: 10,
      onlyModestFlowsWait: true,
    });
    await Promise.all([acquire("greedy"), acquire("greedy"), acquire("greedy")]);
    expect([seated, refused]).toEqual([["greedy", "greedy"], ["greedy"]]);
    void acquire("honest");
    await settled();
    expect(queue.waiting).toBe(1);
    queue.release("greedy");
    await settled();
    expect(seated).toEqual(["greedy", "greedy", "honest"]);
  });

  it("ends the wait after its time", async () => {
    const { queue, refused, acquire } = queueOf({ seats: 1, maxWaiting: 10, maxWaitMs: 5 });
    await acquire("a");
    await acquire("b");
    expect([refused, queue.waiting]).toEqual([["b"], 0]);
    queue.release("a");
    expect([queue.held, queue.acquire("c")]).toEqual([0, true]);
  });

  it("ends every wait after a time of its own", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { queue, refused, acquire } = queueOf({ seats: 1, maxWaiting: 10 });
    await acquire("a");
    void acquire("b");
    await vi.advanceTimersByTimeAsync(QUEUE_WAIT_MS - 1);
    expect([refused, queue.waiting]).toEqual([[], 1]);
    await vi.advanceTimersByTimeAsync(1);
    expect([refused, queue.waiting]).toEqual([["b"], 0]);
  });

  it("lets go of a caller that is gone while it waits, and of one that was gone before", async () => {
    const queue = new FairQueue({ seats: 1, maxWaiting: 10 });
    queue.tryAcquire("a");
    const gone = new AbortController();
    const waiting = queue.acquire("b", "", (leave) => gone.signal.addEventListener("abort", leave));
    const next = queue.acquire("b");
    gone.abort();
    expect([await waiting, queue.waiting]).toEqual([false, 1]);
    expect(await queue.acquire("c", "", (leave) => leave())).toBe(false);
    queue.release("a");
    expect([await next, queue.held, queue.waiting]).toEqual([true, 1, 0]);
    queue.release("b");
    expect([queue.held, queue.flows]).toEqual([0, 0]);
  });

  it("remembers no flow that holds nothing, and counts no release twice", () => {
    const queue = new FairQueue({ seats: 1, maxWaiting: 0 });
    for (let index = 0; index < 1_000; index++) {
      expect(queue.acquire(`flow ${index}`)).toBe(true);
      queue.release(`flow ${index}`);
      queue.release(`flow ${index}`);
    }
    expect([queue.held, queue.flows]).toEqual([0, 0]);
  });

  it("serves each of 1,000 random flows that wait, and ends empty", async () => {
    const { queue, seated, refused, acquire } = queueOf({ seats: 7, seatsPerFlow: 3, maxWaiting: 5_000 });
    const asked: Promise<void>[] = [];
    for (let index = 0; index < 5_000; index++) asked.push(acquire(`flow ${(index * 7_919) % 1_000}`));
    let released = 0;
    while (released < 5_000) {
      await settled();
      expect(queue.held).toBeLessThanOrEqual(7);
      for (; released < seated.length; released++) queue.release(seated[released] ?? "");
    }
    await Promise.all(asked);
    expect([seated.length, refused.length, queue.held, queue.waiting, queue.flows]).toEqual([
      5_000, 0, 0, 0, 0,
    ]);
  });
});
