import { expect, it, vi } from "vitest";
import { SLAB_BYTES, TakenSlabs } from "../../../src/recording/thread/slab.ts";
import type { FromThread } from "../../../src/recording/thread/thread-messages.ts";

it("slabs that follow at once are returned together, each buffer and byte once", async () => {
  const answers: { message: FromThread; transfer: readonly ArrayBuffer[] }[] = [];
  const taken = new TakenSlabs((message, transfer) => void answers.push({ message, transfer }));
  const buffers = [1, 2, 3].map(() => new ArrayBuffer(SLAB_BYTES));
  const small = new ArrayBuffer(100);
  const now = vi.spyOn(performance, "now").mockReturnValue(1_000);
  taken.add(buffers[0] as ArrayBuffer, new Map([[7, 10]]));
  taken.add(buffers[1] as ArrayBuffer, new Map([[7, 20]]));
  taken.add(small, new Map([[8, 5]]));
  taken.add(
    buffers[2] as ArrayBuffer,
    new Map([
      [7, 1],
      [8, 2],
    ]),
  );
  expect(answers).toHaveLength(1);
  await new Promise((resolve) => setImmediate(resolve));
  expect(answers.map(({ message }) => message)).toEqual([
    { kind: "taken", slabs: 1, buffers: [buffers[0]], bytes: [[7, 10]] },
    {
      kind: "taken",
      slabs: 3,
      buffers: [buffers[1], buffers[2]],
      bytes: [
        [7, 21],
        [8, 7],
      ],
    },
  ]);
  for (const { message, transfer } of answers)
    expect(message.kind === "taken" && message.buffers).toBe(transfer);
  // A slow disk: each slab is returned when it is taken.
  for (const later of [1_002, 1_004]) {
    now.mockReturnValue(later);
    taken.add(new ArrayBuffer(SLAB_BYTES), new Map());
  }
  expect(answers).toHaveLength(4);
  now.mockRestore();
});
