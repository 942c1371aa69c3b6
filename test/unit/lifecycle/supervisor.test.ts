import { describe, expect, it } from "vitest";
import { defaultConfiguration } from "../../../src/config/configuration.ts";
import type { Component } from "../../../src/lifecycle/component.ts";
import { Supervisor } from "../../../src/lifecycle/supervisor.ts";

const NAMES = ["a", "b", "c", "d"];
const never = () => new Promise<never>(() => {});

/** Components that write what happens to them into `steps`. */
function supervise(
  components: (name: string) => Partial<Component> & { start?: () => void },
  maxStopMs = 1_000,
) {
  const steps: string[] = [];
  const logged: object[] = [];
  const app = new Supervisor({ error: (fields) => logged.push(fields) }, { maxStopMs });
  const parts = NAMES.map((name) =>
    app.add(name, async () => {
      const { start, ...more } = components(name);
      start?.();
      steps.push(`+${name}`);
      return { name, stop: () => void steps.push(`-${name}`), ...more };
    }),
  );
  return { app, parts, steps, logged };
}

describe("Supervisor", () => {
  it("starts in the order of the list and stops in reverse", async () => {
    const { app, steps } = supervise(() => ({}));
    await app.start();
    expect(await app.stop()).toEqual([]);
    expect(steps).toEqual(["+a", "+b", "+c", "+d", "-d", "-c", "-b", "-a"]);
  });

  it.each(NAMES)("stops what had started, in reverse, when %s cannot start", async (failing) => {
    const { app, steps } = supervise((name) => ({
      start: () => {
        if (name === failing) throw new Error(`${name} cannot start`);
      },
    }));
    await expect(app.start()).rejects.toThrow(`${failing} cannot start`);
    const before = NAMES.slice(0, NAMES.indexOf(failing));
    expect(steps).toEqual([
      ...before.map((name) => `+${name}`),
      ...before.toReversed().map((name) => `-${name}`),
    ]);
  });

  it("gives what a component made to those after it, and not before it has started", async () => {
    const { app, parts } = supervise(() => ({}));
    expect(() => parts[1]?.started).toThrow('the component "b" has not started');
    expect(parts[1]?.ifStarted).toBeUndefined();
    await app.start();
    expect(parts[1]?.started).toMatchObject({ name: "b" });
    expect(parts[1]?.ifStarted).toBe(parts[1]?.started);
  });

  it("stops the others when a component fails to stop or never does, and reports both", async () => {
    const { app, steps, logged } = supervise(
      (name) =>
        name === "b"
          ? { stop: never }
          : name === "c"
            ? {
                stop: () => {
                  throw new Error("c is stuck");
                },
              }
            : {},
      20,
    );
    await app.start();
    expect(await app.stop()).toEqual(["c", "b"]);
    expect(steps.slice(4)).toEqual(["-d", "-a"]);
    expect(logged).toEqual([
      { component: "c", step: "stop", error: new Error("c is stuck") },
      { component: "b", step: "stop", error: new Error("not done after 20 ms") },
    ]);
  });

  it("rejects with the reason of the failed start, whatever stopping brings", async () => {
    const { app } = supervise((name) => ({
      start: () => {
        if (name === "c") throw new Error("c cannot start");
      },
      stop: () => {
        throw new Error(`${name} is stuck`);
      },
    }));
    await expect(app.start()).rejects.toThrow("c cannot start");
  });

  it("is not ready before the last component has started, nor once a shutdown has begun", async () => {
    const seen: unknown[] = [];
    const { app } = supervise(() => ({ start: () => seen.push(app.lifeChecks.starting?.()) }));
    await app.start();
    expect(seen).toEqual(NAMES.map(() => "the gateway is starting"));
    expect(app.lifeChecks.starting?.()).toBeUndefined();
    expect(app.lifeChecks.draining?.()).toBeUndefined();
    await app.shutDown(0);
    expect(app.lifeChecks.draining?.()).toBe("the gateway is shutting down");
  });

  it("drains all at once, and stops when the last has drained", async () => {
    let drained = (): void => {};
    const { app, steps } = supervise((name) => ({
      drain: async (graceMs) => {
        steps.push(`${name} drains ${graceMs}`);
        if (name === "a") await new Promise<void>((resolve) => (drained = resolve));
      },
    }));
    await app.start();
    steps.length = 0;
    const stopped = app.shutDown(5);
    expect(app.isDraining).toBe(true);
    expect(steps).toEqual(["d drains 5", "c drains 5", "b drains 5", "a drains 5"]);
    await new Promise(setImmediate);
    expect(steps).toHaveLength(4);
    drained();
    expect(await stopped).toEqual([]);
    expect(steps.slice(4)).toEqual(["-d", "-c", "-b", "-a"]);
  });

  it("is a lame duck for the delay, and drains then", async () => {
    const { app, steps } = supervise((name) => ({
      enterLameDuck: () => void steps.push(`${name} is a lame duck`),
      drain: async () => void steps.push(`${name} drains`),
    }));
    await app.start();
    steps.length = 0;
    const stopped = app.shutDown(5, { delayMs: 10, hasSuccessor: false });
    expect(app.isDraining).toBe(true);
    await new Promise(setImmediate);
    expect(steps).toEqual(["d", "c", "b", "a"].map((name) => `${name} is a lame duck`));
    await stopped;
    expect(steps.slice(4, 8)).toEqual(["d", "c", "b", "a"].map((name) => `${name} drains`));
  });

  it("stops what does not drain within the grace period and the bound", async () => {
    const { app, steps, logged } = supervise((name) => (name === "b" ? { drain: never } : {}), 20);
    await app.start();
    expect(await app.shutDown(5)).toEqual([]);
    expect(steps.slice(4)).toEqual(["-d", "-c", "-b", "-a"]);
    expect(logged).toEqual([{ component: "b", step: "drain", error: new Error("not done after 25 ms") }]);
  });

  it("stops once, however often it is asked to", async () => {
    const { app, steps } = supervise(() => ({}));
    await app.start();
    await Promise.all([app.stop(), app.stop(), app.shutDown(0)]);
    expect(steps.slice(4)).toEqual(["-d", "-c", "-b", "-a"]);
  });

  it("knows the health of the components that have one", async () => {
    const { app } = supervise((name) => (name === "b" ? { health: () => "not yet listed" } : {}));
    await app.start();
    const checks = Object.entries(app.healthChecks).map(([name, check]) => [name, check()]);
    expect(checks).toEqual([["b", "not yet listed"]]);
  });

  it("reloads all, and rejects when all have settled", async () => {
    const reloaded: unknown[] = [];
    const next = defaultConfiguration();
    const { app } = supervise((name) => ({
      reload: async (configuration) => {
        if (name === "a") throw new Error("a cannot reload");
        await new Promise(setImmediate);
        reloaded.push([name, configuration === next]);
      },
    }));
    await app.start();
    await expect(app.reload(next)).rejects.toThrow("a cannot reload");
    expect(reloaded).toEqual(["b", "c", "d"].map((name) => [name, true]));
  });
});
