import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ClusterStore } from "../../../src/cluster/cluster-store.ts";
import { ManifestSource } from "../../../src/cluster/manifest-source.ts";
import { FeatureGates } from "../../../src/config/feature-gates.ts";
import type { WatchPaths } from "../../../src/config/path-watcher.ts";

type WatchEvents = Parameters<WatchPaths>[1];

const podText = (name: string) =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\nspec: {containers: [{name: main, image: i}]}\n`;

class RecordingLogger {
  readonly lines: string[] = [];
  #onLine = () => {};
  info(_fields: object, message: string) {
    this.#add(`info ${message}`);
  }
  error(fields: object, message: string) {
    this.#add(`error ${message} ${JSON.stringify(fields)}`);
  }
  /** The first line, of those that were and those that come, that holds the text. */
  lineWith(text: string): Promise<string> {
    return new Promise((resolve) => {
      this.#onLine = () => {
        const found = this.lines.find((line) => line.includes(text));
        if (found !== undefined) resolve(found);
      };
      this.#onLine();
    });
  }
  #add(line: string) {
    this.lines.push(line);
    this.#onLine();
  }
}

let folder: string;
let source: ManifestSource | undefined;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-manifests-"));
});
afterEach(async () => {
  await source?.stop();
  source = undefined;
  await rm(folder, { recursive: true });
});

/** Threads run what is compiled: Node does not read TypeScript everywhere. */
const compiledThread = pathToFileURL(path.resolve("dist/src/cluster/manifest-thread.js"));

const start = async (paths: string[], watchPaths?: WatchPaths, threadProgram = compiledThread) => {
  const [store, logger] = [new ClusterStore(), new RecordingLogger()];
  source = await ManifestSource.start({
    gates: FeatureGates.defaults,
    paths,
    store,
    logger,
    reloadDelayMs: 5,
    threadProgram,
    ...(watchPaths && { watchPaths }),
  });
  const names = () => store.listPods().map(({ metadata }) => metadata.name);
  /** One edit may be seen as several: what counts is the state that it leads to. */
  const hasNames = (...expected: string[]) =>
    new Promise<void>((resolve) => {
      const check = () => void (names().join() === expected.join() && resolve());
      store.subscribe(check);
      check();
    });
  return { store, logger, names, hasNames };
};
const file = (name: string) => path.join(folder, name);
const replaceFile = async (name: string, text: string) => {
  await writeFile(file("being-written"), text);
  await rename(file("being-written"), file(name));
};

describe("ManifestSource", () => {
  it("reads the files of a folder that kubectl would apply", async () => {
    await writeFile(file("a.yaml"), podText("a"));
    await writeFile(file("b.yml"), podText("b"));
    await writeFile(
      file("c.json"),
      JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: "n" } }),
    );
    await writeFile(file("notes.txt"), "not yaml: [");
    await writeFile(file(".hidden.yaml"), podText("hidden"));
    await mkdir(file("below"));
    await writeFile(path.join(folder, "below", "d.yaml"), podText("d"));
    const { store, names } = await start([folder, file("a.yaml")]);
    expect(names()).toEqual(["a", "b"]);
    expect(store.listNodes()).toHaveLength(1);
  });

  it("follows a file that is replaced again and again", async () => {
    await writeFile(file("a.yaml"), podText("a"));
    const { hasNames, logger } = await start([file("a.yaml")]);
    await replaceFile("a.yaml", podText("b"));
    await hasNames("b");
    await replaceFile("a.yaml", podText("c"));
    await hasNames("c");
    await logger.lineWith("info manifests reloaded");
  });

  const listText = (...names: string[]) => {
    const items = names.map((name) =>
      JSON.stringify({
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name },
        spec: { containers: [{ name: "main", image: "i" }] },
      }),
    );
    return `apiVersion: v1\nkind: List\nitems:\n${items.map((item) => `- ${item}\n`).join("")}# ${"x".repeat(70_000)}\n`;
  };

  it("lets a thread read a large file, and tells what is wrong with it", async () => {
    await writeFile(file("a.yaml"), podText("a"));
    const { hasNames, logger } = await start([folder]);
    await replaceFile("a.yaml", listText("b", "c"));
    await hasNames("b", "c");
    await replaceFile("a.yaml", listText("b", "Bad_Name"));
    expect(await logger.lineWith("error")).toContain("manifests are invalid, the last good ones stay in use");
    await replaceFile("a.yaml", listText("d"));
    await hasNames("d");
    expect(logger.lines.join("")).not.toContain("by a thread");
  });

  it("reads a large file itself where no thread can", async () => {
    await writeFile(file("a.yaml"), podText("a"));
    const { hasNames, logger } = await start([folder], undefined, pathToFileURL(file("missing.js")));
    await replaceFile("a.yaml", listText("b", "c"));
    await hasNames("b", "c");
    expect(await logger.lineWith("error")).toContain("manifests could not be read in a thread");
  });

  it("follows a mounted ConfigMap, whose data link is swapped", async () => {
    for (const version of ["..1", "..2"]) {
      await mkdir(file(version));
      await writeFile(path.join(folder, version, "a.yaml"), podText(`a${version.at(-1)}`));
    }
    await symlink("..1", file("..data"));
    await symlink("..data/a.yaml", file("a.yaml"));
    const { names, hasNames } = await start([file("a.yaml")]);
    expect(names()).toEqual(["a1"]);
    await symlink("..2", file("..next"));
    await rename(file("..next"), file("..data"));
    await hasNames("a2");
  });

  it("keeps the last good state on a bad edit, says so, and recovers", async () => {
    await writeFile(file("a.yaml"), podText("a"));
    const { logger, names, hasNames } = await start([folder]);
    await replaceFile("a.yaml", podText("Bad_Name"));
    expect(await logger.lineWith("error")).toMatch(
      /^error manifests are invalid, the last good ones stay in use .*a\.yaml:3: Pod \\"Bad_Name\\" is invalid/,
    );
    expect(names()).toEqual(["a"]);
    await rm(file("a.yaml"));
    await hasNames();
    await replaceFile("b.yaml", podText("b"));
    await hasNames("b");
  });

  it("reloads once for many events, and tells of a lost watch", async () => {
    await writeFile(file("a.yaml"), podText("a"));
    const watched: WatchEvents[] = [];
    let stops = 0;
    const { logger, hasNames } = await start([file("a.yaml")], (_, given) => {
      watched.push(given);
      return () => stops++;
    });
    const [events] = watched;
    await writeFile(file("a.yaml"), podText("b"));
    for (let count = 0; count < 100; count++) events?.onChange();
    await hasNames("b");
    await logger.lineWith("reloaded");
    expect(logger.lines).toEqual(["info manifests reloaded"]);
    events?.onError(new Error("gone"));
    expect(logger.lines.at(-1)).toContain("no longer watched");
    await source?.stop();
    expect(stops).toBe(1);
    events?.onChange();
    expect(logger.lines).toHaveLength(2);
  });

  it("does not start with wrong or missing files", async () => {
    await writeFile(file("a.yaml"), "kind: [");
    await expect(start([file("a.yaml")])).rejects.toThrow(/a\.yaml:1/);
    await expect(start([file("missing.yaml")])).rejects.toThrow(/missing\.yaml: no such file or directory/);
  });
});
