import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { watchPathsBy } from "../../../src/config/path-watcher.ts";
import { eventually } from "../../support/eventually.ts";

describe("paths that the system does not watch", () => {
  let folder: string;
  let stop: (() => void) | undefined;
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), "sluice-paths-"));
  });
  afterEach(() => {
    stop?.();
    rmSync(folder, { recursive: true, force: true });
  });

  const refuse = (): never => {
    throw Object.assign(new Error("EMFILE: too many open files, watch"), { code: "EMFILE" });
  };
  const countChanges = (given: string): (() => number) => {
    let changes = 0;
    const onChange = (): void => {
      changes += 1;
    };
    const onError = (error: Error): void => expect.fail(error.message);
    stop = watchPathsBy({ watch: refuse, lookEveryMs: 5 }, [given], { onChange, onError });
    return () => changes;
  };

  it("are looked at: a file that is replaced", async () => {
    const file = path.join(folder, "a.yaml");
    writeFileSync(file, "a");
    const changes = countChanges(file);
    writeFileSync(`${file}.new`, "b");
    renameSync(`${file}.new`, file);
    await eventually("the change is seen", () => changes() === 1);
  });

  it("are looked at: a file that is not there yet", async () => {
    const file = path.join(folder, "a.yaml");
    const changes = countChanges(file);
    writeFileSync(file, "a");
    await eventually("the change is seen", () => changes() > 0);
  });

  it("are looked at: a file in a folder", async () => {
    writeFileSync(path.join(folder, "a.yaml"), "a");
    const changes = countChanges(folder);
    writeFileSync(path.join(folder, "a.yaml"), "longer");
    await eventually("the change is seen", () => changes() > 0);
  });

  it("are looked at: a folder with links to itself, and a file that cannot be read", async () => {
    for (const name of ["b", "c"]) symlinkSync(".", path.join(folder, name));
    symlinkSync("gone", path.join(folder, "d"));
    writeFileSync(path.join(folder, "a.yaml"), "a");
    const changes = countChanges(folder);
    writeFileSync(path.join(folder, "a.yaml"), "longer");
    await eventually("the change is seen", () => changes() > 0);
  });

  it("are looked at: a mounted ConfigMap, whose link is swapped", async () => {
    for (const version of ["1", "2"]) {
      mkdirSync(path.join(folder, version));
      writeFileSync(path.join(folder, version, "a.yaml"), version);
    }
    symlinkSync("1", path.join(folder, "..data"));
    symlinkSync("..data/a.yaml", path.join(folder, "a.yaml"));
    const changes = countChanges(path.join(folder, "a.yaml"));
    symlinkSync("2", path.join(folder, "..new"));
    renameSync(path.join(folder, "..new"), path.join(folder, "..data"));
    await eventually("the change is seen", () => changes() > 0);
  });
});
