import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ByteQueue } from "../../../../protocols/resume/index.ts";

function contentOf(queue: ByteQueue, skip = 0): number[] {
  const content: number[] = [];
  queue.visit(skip, (view) => content.push(...view));
  return content;
}

describe("ByteQueue", () => {
  it.each([true, false])("holds what was appended and not dropped (reuses: %s)", (reuses) => {
    const step = fc.oneof(
      fc.record({ append: fc.oneof(fc.nat(20), fc.nat(3_000)) }),
      fc.record({ drop: fc.nat(4_000) }),
      fc.record({ shift: fc.constant(true) }),
      fc.record({ trim: fc.constant(true) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const queue = new ByteQueue(reuses);
        let model: number[] = [];
        let next = 0;
        const shifted: { view: Uint8Array; content: number[] }[] = [];
        for (const taken of steps) {
          if ("append" in taken) {
            const bytes = Uint8Array.from({ length: taken.append }, () => next++ % 253);
            const seen: number[] = [];
            queue.append(bytes, (view) => seen.push(...view));
            expect(seen).toEqual([...bytes]);
            model.push(...bytes);
          } else if ("drop" in taken) {
            const bytes = Math.min(taken.drop, model.length);
            queue.drop(bytes);
            model = model.slice(bytes);
          } else if ("shift" in taken) {
            const view = queue.shift() ?? new Uint8Array(0);
            expect([...view]).toEqual(model.slice(0, view.byteLength));
            expect(view.byteLength > 0).toBe(model.length > 0);
            model = model.slice(view.byteLength);
            if (!reuses) shifted.push({ view, content: [...view] });
          } else queue.trim();
          expect(queue.byteLength).toBe(model.length);
          expect(contentOf(queue)).toEqual(model);
          const skip = Math.min(7, model.length);
          expect(contentOf(queue, skip)).toEqual(model.slice(skip));
        }
        // What was handed out of a queue that does not reuse memory stays as it was.
        for (const { view, content } of shifted) expect([...view]).toEqual(content);
      }),
      { numRuns: 200 },
    );
  });
});
