import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { HttpDownstream } from "../../../packages/client/src/http/downstream/http-downstream.ts";
import { SlowBodies, whenBodySlow } from "../../../src/http/slow-bodies.ts";
import { fixedBound } from "../../support/fixed-bound.ts";

// The bound under test.
const MIN_BODY_BYTES = 16 * 1024;

const BODY_LOOK_MS = fixedBound("src/http/slow-bodies.ts", "BODY_LOOK_MS");

/** An exchange whose body the test sends, and whose end it tells. */
function exchange() {
  const body = new PassThrough();
  const listeners: (() => void)[] = [];
  const abort = vi.fn();
  const downstream = {
    body,
    abort,
    get isBodyComplete() {
      return body.readableEnded;
    },
    onClose: (listener: () => void) => void listeners.push(listener),
  } as unknown as HttpDownstream;
  const close = (): void => {
    for (const listener of listeners) listener();
  };
  return { body, downstream, abort, close };
}

beforeEach(
  () => void vi.useFakeTimers({ toFake: ["setTimeout", "setInterval", "clearTimeout", "clearInterval"] }),
);
afterEach(() => void vi.useRealTimers());

describe("places of requests whose bodies do not come", () => {
  it("where all are taken, the largest flow loses its newest, and one within its share never to itself", () => {
    const bodies = new SlowBodies({ places: 4, placesPerFlow: 3 });
    const lost: string[] = [];
    const hold = (flow: string, name: string) =>
      bodies.hold(flow, exchange().downstream, () => lost.push(name));
    for (const name of ["a1", "a2", "a3"]) hold("a", name);
    hold("b", "b1");
    hold("c", "c1");
    expect([lost, bodies.size]).toEqual([["a3"], 4]);
    // Past its own share, and no flow has more than one more than it: the newcomer itself.
    hold("b", "b2");
    hold("a", "a4");
    expect([lost, bodies.size]).toEqual([["a3", "b2", "a4"], 4]);
  });

  it("are given back when the exchange is over, once", () => {
    const bodies = new SlowBodies({ places: 2, placesPerFlow: 2 });
    const first = exchange();
    const leave = bodies.hold("a", first.downstream, () => {});
    bodies.hold("a", exchange().downstream, () => {});
    first.close();
    leave();
    expect(bodies.size).toBe(1);
  });

  it("a body that is whole is not lost to others", () => {
    const bodies = new SlowBodies({ places: 2, placesPerFlow: 2 });
    const lost: string[] = [];
    const whole = exchange();
    Object.defineProperty(whole.downstream, "isBodyComplete", { value: true });
    bodies.hold("a", exchange().downstream, () => lost.push("slow"));
    bodies.hold("a", whole.downstream, () => lost.push("whole"));
    bodies.hold("b", exchange().downstream, () => lost.push("b"));
    expect(lost).toEqual(["slow"]);
  });
});

describe("the beginning of a body", () => {
  it("is waited for without taking any of it", async () => {
    const bodies = new SlowBodies({ places: 1, placesPerFlow: 1 });
    const { body, downstream } = exchange();
    const begun = bodies.begins("a", downstream);
    expect(bodies.size).toBe(1);
    body.write("first ");
    expect([await begun, bodies.size]).toEqual([true, 0]);
    const taken: string[] = [];
    body.on("data", (chunk) => taken.push(String(chunk)));
    body.end("and last");
    await new Promise((resolve) => body.once("end", resolve));
    expect(taken.join("")).toBe("first and last");
  });

  it("comes too late after a second, and the request keeps its place until it has to make room", async () => {
    const bodies = new SlowBodies({ places: 2, placesPerFlow: 2 });
    const [first, second] = [exchange(), exchange()];
    const begun = [bodies.begins("a", first.downstream), bodies.begins("a", second.downstream)];
    vi.advanceTimersByTime(BODY_LOOK_MS);
    expect([await Promise.all(begun), bodies.size]).toEqual([[false, false], 2]);
    const other = bodies.begins("b", exchange().downstream);
    expect([second.abort.mock.calls.length, first.abort.mock.calls.length]).toEqual([1, 0]);
    vi.advanceTimersByTime(BODY_LOOK_MS);
    expect(await other).toBe(false);
  });

  it("is not waited for by a request that lost its place", async () => {
    const bodies = new SlowBodies({ places: 1, placesPerFlow: 1 });
    const held = bodies.begins("a", exchange().downstream);
    expect(await bodies.begins("a", exchange().downstream)).toBeUndefined();
    vi.advanceTimersByTime(BODY_LOOK_MS);
    expect(await held).toBe(false);
  });
});

describe("a body that has begun", () => {
  it("is slow below its bytes in a second, and not above", async () => {
    const { body, downstream } = exchange();
    const onSlow = vi.fn();
    body.resume();
    whenBodySlow(downstream, onSlow);
    vi.advanceTimersByTime(BODY_LOOK_MS);
    body.write(Buffer.alloc(MIN_BODY_BYTES));
    await new Promise((resolve) => setImmediate(resolve));
    vi.advanceTimersByTime(BODY_LOOK_MS);
    expect(onSlow).not.toHaveBeenCalled();
    body.write("x");
    await new Promise((resolve) => setImmediate(resolve));
    vi.advanceTimersByTime(BODY_LOOK_MS);
    expect(onSlow).toHaveBeenCalledOnce();
  });

  it("is not slow while nothing takes it", () => {
    const { body, downstream } = exchange();
    const onSlow = vi.fn();
    whenBodySlow(downstream, onSlow);
    body.write("x");
    vi.advanceTimersByTime(5 * BODY_LOOK_MS);
    expect(onSlow).not.toHaveBeenCalled();
  });
});
