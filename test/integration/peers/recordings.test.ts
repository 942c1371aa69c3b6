import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { TESTER_TOKEN } from "../../support/gateway-files.ts";
import { filesIn } from "../../support/recording/recorded-gateway.ts";
import { ReplicaFiles } from "../../support/replicas.ts";
import type { ServedGateway } from "../../support/served-gateway.ts";
import { V5Client } from "../../support/v5-client.ts";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 });

const LIST = "/apis/sluice.dev/v1alpha1/recordings";
const IN_DEFAULT = "/apis/sluice.dev/v1alpha1/namespaces/default/recordings";
const headers = { Authorization: `Bearer ${TESTER_TOKEN}`, Accept: "application/json" };

interface Listed {
  readonly items: readonly { readonly metadata: { readonly name: string } }[];
  readonly metadata: { readonly continue?: string; readonly remainingItemCount?: number };
}

/** The second has workers; the third shares the first one's folder. */
let files: ReplicaFiles;
let replicas: ServedGateway[];
let folders: string[];
beforeAll(async () => {
  files = await ReplicaFiles.create({ count: 3 });
  folders = files.replicas.map((replica) => path.join(replica.files.folder, "recordings"));
  folders[2] = folders[0] ?? "";
  for (const [index, replica] of files.replicas.entries()) {
    const file = replica.files.configurationFile;
    const recording = { folder: folders[index], rules: [{ name: "all" }], minFreeBytes: 0 };
    const more = { recording, ...(index === 1 && { workers: 2 }) };
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), ...more }));
  }
  replicas = await Promise.all(files.replicas.map((_, index) => files.serve(index)));
  for (const { authority } of replicas)
    for (const text of ["one", "two"])
      await new V5Client(authority, `stdout=true&command=echo&command=${text}`, "exec", headers).done;
  await eventually("every session is recorded", () => namesIn(0).length === 4 && namesIn(1).length === 2);
});
afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica.stop()));
  await files.stop();
});

const namesIn = (index: number): string[] =>
  filesIn(folders[index] ?? "", ".cast").map((file) => path.basename(file, ".cast"));
const allNames = (): string[] => [...namesIn(0), ...namesIn(1)].sort();

async function ask(index: number, target: string, init: RequestInit = {}) {
  const answer = await fetch(`http://${replicas[index]?.authority}${target}`, {
    ...init,
    headers: { ...headers, ...init.headers },
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text };
}

async function list(index: number, query = "") {
  const answer = await ask(index, `${LIST}${query}`);
  expect(answer.status).toBe(200);
  const { items, metadata } = JSON.parse(answer.text) as Listed;
  return { names: items.map((item) => item.metadata.name), metadata, warning: answer.headers.get("warning") };
}

describe("recordings of replicas with folders of their own", () => {
  it("are in each replica's list, once, from any worker", async () => {
    for (const index of [0, 1, 1, 1, 2]) {
      const { names, warning } = await list(index);
      expect([names, warning]).toEqual([allNames(), null]);
    }
  });

  it("are listed page by page, each page from another replica, by selectors, too", async () => {
    const names: string[] = [];
    let query = "?limit=1";
    for (let page = 0; page < 6; page++) {
      const { names: shown, metadata } = await list(page % 3, query);
      expect(shown).toHaveLength(1);
      names.push(...shown);
      query = `?limit=1&continue=${metadata.continue}`;
      expect(metadata.continue === undefined).toBe(page === 5);
    }
    expect(names).toEqual(allNames());
    expect((await list(1, "?fieldSelector=spec.user.username%3Dben")).names).toEqual([]);
    expect((await list(1, "?fieldSelector=spec.pod%3Dweb")).names).toEqual(allNames());
  });

  it("are watched through any replica, once each, from what there is", async () => {
    const leaving = new AbortController();
    const target = `http://${replicas[2]?.authority}${LIST}?watch=1`;
    const { body } = await fetch(target, { headers, signal: leaving.signal });
    let text = "";
    const reading = (async () => {
      for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) text += chunk;
    })().catch(() => {});
    const events = () =>
      text
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as { type: string; object: { metadata: { name: string } } })
        .map(({ type, object }) => `${type} ${object.metadata.name}`);
    const before = allNames().map((name) => `ADDED ${name}`);
    await eventually("what there is", () => events().length === before.length);
    expect(events()).toEqual(before);
    for (const index of [0, 1]) {
      const [file = ""] = filesIn(folders[index] ?? "", ".cast");
      const [name, copy] = [path.basename(file, ".cast"), `copy-${index}`];
      writeFileSync(file.replace(name, copy), readFileSync(file, "utf8").replaceAll(name, copy));
      await eventually("the one that came", () => events().includes(`ADDED ${copy}`));
      expect((await ask(0, `${IN_DEFAULT}/${copy}`, { method: "DELETE" })).status).toBe(200);
      await eventually("the one that went", () => events().includes(`DELETED ${copy}`));
    }
    expect(events()).toHaveLength(before.length + 4);
    leaving.abort();
    await reading;
  });

  it("are found by their names at any replica, with command line and content", async () => {
    for (const index of [0, 1, 2])
      for (const name of allNames()) {
        const one = await ask(index, `${IN_DEFAULT}/${name}`);
        expect(JSON.parse(one.text)).toMatchObject({
          metadata: { name },
          spec: { command: ["echo", expect.any(String)] },
        });
        const [file = ""] = [0, 1].flatMap((each) =>
          filesIn(folders[each] ?? "", ".cast").filter((some) => some.endsWith(`${name}.cast`)),
        );
        const stored = readFileSync(file, "utf8");
        const content = `${IN_DEFAULT}/${name}/content`;
        const whole = await ask(index, content);
        expect([whole.text, whole.headers.get("content-length")]).toEqual([stored, String(stored.length)]);
        const part = await ask(index, content, { headers: { Range: "bytes=3-40" } });
        expect([part.status, part.text]).toEqual([206, stored.slice(3, 41)]);
        expect((await ask(index, `${IN_DEFAULT.replace("default", "other")}/${name}`)).status).toBe(404);
      }
  });

  it("are sent in parts if they are long", async () => {
    const [name = ""] = namesIn(1);
    const [file = ""] = filesIn(folders[1] ?? "", ".cast").filter((some) => some.endsWith(`${name}.cast`));
    const lines = readFileSync(file, "utf8").split("\n");
    // As another gateway may have written it: the API does not verify recordings.
    lines.splice(
      1,
      0,
      ...Array.from({ length: 3_000 }, (_, line) => `[1,"o","${"x".repeat(1_000)}${line}"]`),
    );
    const copy = "0b6d0000-0000-4000-8000-00000000long";
    const text = lines.join("\n").replaceAll(name, copy);
    writeFileSync(file.replace(name, copy), text);
    expect((await ask(0, `${IN_DEFAULT}/${copy}/content`)).text === text).toBe(true);
    expect((await ask(0, `${IN_DEFAULT}/${copy}`, { method: "DELETE" })).status).toBe(200);
  });

  it("are deleted by their names through any replica, with a line in the holder's folder", async () => {
    const [name = ""] = namesIn(1);
    const dry = await ask(0, `${IN_DEFAULT}/${name}?dryRun=All`, { method: "DELETE" });
    expect([dry.status, namesIn(1).includes(name)]).toEqual([200, true]);
    expect((await ask(0, `${IN_DEFAULT}/${name}`, { method: "DELETE" })).status).toBe(200);
    expect(namesIn(1)).not.toContain(name);
    expect(readFileSync(path.join(folders[1] ?? "", "deleted.jsonl"), "utf8")).toMatch(
      new RegExp(`${name}.*the API, by tester`),
    );
    expect((await ask(0, `${IN_DEFAULT}/${name}`, { method: "DELETE" })).status).toBe(404);
    expect((await list(2)).names).toEqual(allNames());
  });

  it("are missing, with a warning, while their replica does not answer, and not unknown", async () => {
    const wire = files.replicas[1]?.wire;
    if (wire === undefined) throw new Error("there is no second replica");
    const { targetPort } = wire;
    const [gone = ""] = namesIn(1);
    wire.targetPort = 1;
    const { names, warning } = await list(0);
    expect(names).toEqual(namesIn(0).sort());
    expect(warning).toBe(`299 - "the list may be incomplete: no answer from replica 127.0.0.1:${wire.port}"`);
    for (const [target, init] of [
      [gone, {}],
      [`${gone}/content`, {}],
      [gone, { method: "DELETE" }],
    ] as const) {
      const { status, text } = await ask(0, `${IN_DEFAULT}/${target}`, init);
      expect([status, text]).toEqual([
        503,
        expect.stringContaining("may be with a replica that does not answer"),
      ]);
    }
    const [own = ""] = namesIn(0);
    expect((await ask(0, `${IN_DEFAULT}/${own}`)).status).toBe(200);
    wire.targetPort = targetPort;
    expect((await ask(0, `${IN_DEFAULT}/${gone}`)).status).toBe(200);
  });
});
