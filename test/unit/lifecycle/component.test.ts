import { describe, expect, it } from "vitest";
import { Started } from "../../../src/lifecycle/component.ts";

describe("what a builder has started", () => {
  it("is stopped in reverse when the builder throws, and its error goes on", async () => {
    const stopped: string[] = [];
    const built = Started.building(async (started) => {
      started.add("a", (name) => stopped.push(name));
      started.add("b", async (name) => stopped.push(name));
      throw new Error("c cannot be read");
    });
    await expect(built).rejects.toThrow("c cannot be read");
    expect(stopped).toEqual(["b", "a"]);
  });

  it("runs on when the builder returns, and is stopped once", async () => {
    const stopped: string[] = [];
    const started = await Started.building((parts) => {
      expect(parts.add("a", (name) => stopped.push(name))).toBe("a");
      return parts;
    });
    expect(stopped).toEqual([]);
    await started.stop();
    await started.stop();
    expect(stopped).toEqual(["a"]);
  });

  it("is stopped whole where one part cannot be, which is reported", async () => {
    const stopped: string[] = [];
    const started = new Started();
    started.add("a", (name) => stopped.push(name));
    started.add("b", () => {
      throw new Error("b hangs");
    });
    started.add("c", () => Promise.reject(new Error("c hangs")));
    await expect(started.stop()).rejects.toThrow("c hangs");
    expect(stopped).toEqual(["a"]);
  });

  it("does not hide why the builder threw", async () => {
    const built = Started.building((started) => {
      started.add("a", () => Promise.reject(new Error("a hangs")));
      throw new Error("b cannot be read");
    });
    await expect(built).rejects.toThrow("b cannot be read");
  });
});
