import { expect, it } from "vitest";
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

it("rereads the configuration only while it serves", () => {
  const life = new ServeLife();
  let reloads = 0;
  const reload = async () => {
    reloads += 1;
  };
  life.reload();
  life.serve(reload);
  life.reload();
  life.leave("failed");
  life.reload();
  expect(reloads).toBe(1);
});
