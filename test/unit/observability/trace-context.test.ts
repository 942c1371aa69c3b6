import { describe, expect, it, vi } from "vitest";
import { traced } from "../../../packages/client/src/observability/trace.ts";
import { remoteContext, traceparentOf } from "../../../src/observability/open-telemetry.ts";

const ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const state = vi.fn((text: string) => ({ serialize: () => text }) as never);

describe("a client's trace context", () => {
  it.each([
    { line: `00-${ID}-${SPAN}-01`, flags: 1 },
    { line: `00-${ID}-${SPAN}-fe`, flags: 0 },
    { line: `cc-${ID}-${SPAN}-01-what-comes-later`, flags: 1 },
  ])("is read of $line", ({ line, flags }) => {
    const context = remoteContext([line], [], state);
    expect(context).toEqual({ traceId: ID, spanId: SPAN, traceFlags: flags, isRemote: true });
    expect(context && traceparentOf(context)).toBe(`00-${ID}-${SPAN}-0${flags}`);
  });

  it.each<[string[]]>([
    [[]],
    [[""]],
    [[`00-${ID}-${SPAN}-01`, `00-${ID}-${SPAN}-01`]],
    [[`00-${ID}-${SPAN}-01-more`]],
    [[`ff-${ID}-${SPAN}-01`]],
    [[`00-${ID.toUpperCase()}-${SPAN}-01`]],
    [[`00-${ID}-${SPAN}-1`]],
    [[`00-${ID}${SPAN}-01`]],
    [[`00-${ID}-${SPAN}-01\u0000`]],
  ])("is none of %j", (lines) => {
    expect(remoteContext(lines, [], state)).toBeUndefined();
  });

  it("keeps the state of vendors, up to 512 characters", () => {
    const line = `00-${ID}-${SPAN}-01`;
    expect(remoteContext([line], ["a=1", "b=2"], state)?.traceState?.serialize()).toBe("a=1,b=2");
    expect(remoteContext([line], [`a=${"x".repeat(511)}`], state)).not.toHaveProperty("traceState");
  });
});

describe("a traced step", () => {
  function trace() {
    const ends: unknown[] = [];
    const span = { set: () => {}, end: (error?: unknown) => void ends.push(error) };
    return { ends, trace: { begin: () => span } as never };
  }

  it("ends once with its result, at once or later, and with its error", async () => {
    const { ends, trace: own } = trace();
    expect(traced(own, "policy", () => 1)).toBe(1);
    expect(await traced(own, "dial", () => Promise.resolve(2))).toBe(2);
    const error = new Error("no");
    expect(() => traced(own, "policy", () => raise(error))).toThrow(error);
    await expect(traced(own, "dial", () => Promise.reject(error))).rejects.toBe(error);
    expect(ends).toEqual([undefined, undefined, error, error]);
  });

  it("is only run where nothing is traced", () => {
    expect(traced(undefined, "policy", () => 1)).toBe(1);
  });
});

function raise(error: Error): never {
  throw error;
}
