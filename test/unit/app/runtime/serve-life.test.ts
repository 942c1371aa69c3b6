import { expect, it, vi } from "vitest";
import { ServeLife } from "../../../../src/app/runtime/serve-life.ts";

it("leaves once, for the first reason", async () => {
  const life = new ServeLife();
  life.serve(async () => {});
  expect([life.state, life.leaving.aborted]).toEqual(["serving", false]);
  life.leave("replaced");
  life.leave("SIGTERM");
  expect(await life.end).toBe("replaced");
  expect([life.state, life.leaving.aborted]).toEqual(["leaving", true]);
});

it("does not serve after it has left, as when a signal ends the start", async () => {
  const life = new ServeLife();
  life.leave("SIGINT");
  life.serve(async () => {});
  expect(life.state).toBe("leaving");
});

/** A reload that takes until `finish`. */
function slowReload() {
  let begun = 0;
  let finish = (): void => {};
  const reload = (): Promise<void> => {
    begun += 1;
    return new Promise((resolve) => {
      finish = resolve;
    });
  };
  return { reload, begun: () => begun, finish: () => finish() };
}

it("rereads the configuration once it serves, if it was told to before, and never when it leaves", () => {
  const life = new ServeLife();
  const { reload, begun } = slowReload();
  life.reload();
  life.reload();
  expect(begun()).toBe(0);
  life.serve(reload);
  expect(begun()).toBe(1);
  life.leave("failed");
  life.reload();
  expect(begun()).toBe(1);
});

it("rereads once more for all signals that come while it rereads, and no more when it leaves", async () => {
  const life = new ServeLife();
  const { reload, begun, finish } = slowReload();
  life.serve(reload);
  for (let signals = 0; signals < 100; signals++) life.reload();
  expect(begun()).toBe(1);
  finish();
  await vi.waitFor(() => expect(begun()).toBe(2));
  life.reload();
  life.leave("SIGTERM");
  finish();
  await new Promise((resolve) => setImmediate(resolve));
  expect(begun()).toBe(2);
});
