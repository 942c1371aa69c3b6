import { once } from "node:events";
import {
  createReadStream,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FakeNode } from "../../../packages/lab/src/fake-node/fake-node.ts";
import { FolderRecordings } from "../../../src/session-api/folder-recordings.ts";
import { RECORDINGS } from "../../../src/session-api/recording-object.ts";
import { RecordingsApi } from "../../../src/session-api/recordings-api.ts";
import { eventually } from "../../support/eventually.ts";
import { runWebNode } from "../../support/fake-nodes.ts";
import { GatewayFiles, webOn } from "../../support/gateway-files.ts";
import { clusterRole, clusterRoleBinding, resourceRule } from "../../support/rbac-objects.ts";
import { filesIn } from "../../support/recording/recorded-gateway.ts";
import { type ServedGateway, serveGateway } from "../../support/served-gateway.ts";
import { V5Client } from "../../support/v5-client.ts";

const PREFIX = "/apis/sluice.dev/v1alpha1";
const IN_DEFAULT = `${PREFIX}/namespaces/default/recordings`;
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

const MANIFESTS = [
  clusterRole("lister", resourceRule("list,get,watch|sluice.dev|recordings")),
  clusterRoleBinding("lister", "ClusterRole/lister", "User:lister"),
  clusterRole("auditor", resourceRule("get|sluice.dev|recordings/content")),
  clusterRoleBinding("auditor", "ClusterRole/auditor", "User:auditor"),
];

let files: GatewayFiles;
let node: FakeNode;
let gateway: ServedGateway;
let folder: string;
let names: string[] = [];
beforeAll(async () => {
  node = await runWebNode();
  files = new GatewayFiles();
  folder = path.join(files.folder, "recordings");
  files.configure({
    ...webOn(node.port),
    manifests: MANIFESTS,
    users: ["admin-token,admin,1,system:masters", "lister-token,lister,2", "auditor-token,auditor,3"],
    configuration: {
      authorization: { mode: ["RBAC"] },
      audit: { log: { path: "audit.log" } },
      sessions: { reauthorizeInterval: "1s" },
      recording: { folder, rules: [{ name: "all" }], minFreeBytes: 0 },
    },
  });
  gateway = await serveGateway(files.configurationFile);
  const headers = { Authorization: "Bearer admin-token" };
  for (const text of ["one", "two", "three"]) {
    const query = `stdout=true&command=echo&command=${text}`;
    await new V5Client(gateway.authority, query, "exec", headers).done;
  }
  const casts = await eventually("three recordings", () => {
    const found = filesIn(folder, ".cast");
    return found.length === 3 && found;
  });
  names = casts.map((file) => path.basename(file, ".cast")).sort();
  // Neither is a recording that this version finished.
  const other = path.join(folder, "2026/01/01");
  mkdirSync(other, { recursive: true });
  writeFileSync(path.join(other, "other.cast"), "not a recording\n");
  writeFileSync(path.join(other, "running.cast.writer.part"), "");
});
afterAll(async () => {
  await gateway?.stop();
  await node.close();
  files.remove();
});

async function ask(target: string, token = "admin", init: RequestInit = {}) {
  const headers = { Authorization: `Bearer ${token}-token`, Accept: "application/json", ...init.headers };
  const answer = await fetch(`http://${gateway.authority}${target}`, { ...init, headers });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text, json: () => JSON.parse(text) };
}

interface WatchEvent {
  readonly type: string;
  readonly object: {
    readonly kind: string;
    readonly metadata: { readonly name?: string; readonly resourceVersion: string };
    readonly spec?: object;
    readonly rows?: readonly { readonly cells: readonly string[] }[];
  };
}

async function watch(target: string, accept = "application/json") {
  const leaving = new AbortController();
  const headers = { Authorization: "Bearer lister-token", Accept: accept };
  const answer = await fetch(`http://${gateway.authority}${target}`, { headers, signal: leaving.signal });
  expect(answer.status).toBe(200);
  const events: WatchEvent[] = [];
  const reading = (async () => {
    let text = "";
    for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const lines = (text + chunk).split("\n");
      text = lines.pop() ?? "";
      events.push(...lines.map((line) => JSON.parse(line) as WatchEvent));
    }
  })().catch(() => {});
  return {
    events,
    until: (isSeen: (all: readonly WatchEvent[]) => boolean) =>
      eventually("the events", () => isSeen(events) && events),
    end: async () => {
      leaving.abort();
      await reading;
    },
  };
}

const fileOf = (name: string): string =>
  filesIn(folder, ".cast").find((file) => path.basename(file, ".cast") === name) ?? "";

describe("recordings of the API group", () => {
  it("are discovered with their subresource", async () => {
    const { resources } = (await ask(PREFIX)).json();
    expect(resources).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          name: "recordings",
          kind: "Recording",
          verbs: ["delete", "get", "list", "watch"],
        }),
        expect.objectContaining({ name: "recordings/content", verbs: ["get"] }),
      ]),
    );
  });

  it("are listed in pages, by namespace and selectors, and as a Table, without command lines", async () => {
    const all = (await ask(`${PREFIX}/recordings`, "lister")).json();
    expect(all).toMatchObject({ kind: "RecordingList", apiVersion: "sluice.dev/v1alpha1" });
    expect(all.items.map(({ metadata }: Named) => metadata.name)).toEqual(names);
    expect(JSON.stringify(all)).not.toContain("echo");
    const first = (await ask(`${IN_DEFAULT}?limit=2`)).json();
    expect(first.metadata).toMatchObject({ remainingItemCount: 1 });
    const second = (await ask(`${IN_DEFAULT}?limit=2&continue=${first.metadata.continue}`)).json();
    const paged = [...first.items, ...second.items];
    expect(paged.map(({ metadata }: Named) => metadata.name)).toEqual(names);
    expect(second.metadata.continue).toBeUndefined();
    expect((await ask(`${IN_DEFAULT}?continue=nonsense`)).status).toBe(400);
    expect((await ask(`${PREFIX}/namespaces/other/recordings`)).json().items).toEqual([]);
    const selected = await ask(`${IN_DEFAULT}?fieldSelector=spec.user.username%3Dben`);
    expect(selected.json().items).toEqual([]);
    const table = (await ask(IN_DEFAULT, "lister", { headers: { Accept: TABLE } })).json();
    expect(table.columnDefinitions.map(({ name }: { name: string }) => name)).toContain("Gaps");
    expect(table.rows[0].cells.slice(0, 5)).toEqual([names[0], "web", "main", "exec", "admin"]);
  });

  it("are watched from a list on: those that come and go, each once, as a Table, too", async () => {
    const { metadata } = (await ask(`${IN_DEFAULT}?limit=1`, "lister")).json();
    const second = (await ask(`${IN_DEFAULT}?limit=1&continue=${metadata.continue}`)).json();
    expect(second.metadata.resourceVersion).toBe(metadata.resourceVersion);
    const from = `watch=1&resourceVersion=${metadata.resourceVersion}`;
    const plain = await watch(`${IN_DEFAULT}?${from}`);
    const table = await watch(`${IN_DEFAULT}?${from}`, TABLE);
    const elsewhere = await watch(`${PREFIX}/recordings?${from}&fieldSelector=spec.pod%3Dother`);
    const copied = fileOf(names[0] ?? "").replace(names[0] ?? "", "copied");
    writeFileSync(copied, readFileSync(fileOf(names[0] ?? ""), "utf8").replaceAll(names[0] ?? "", "copied"));
    await plain.until((events) => events.length === 1);
    rmSync(copied);
    const [added, deleted] = await plain.until((events) => events.length === 2);
    expect(added).toMatchObject({
      type: "ADDED",
      object: { kind: "Recording", metadata: { name: "copied", namespace: "default" }, status: { gaps: 0 } },
    });
    expect(added?.object.spec).not.toHaveProperty("command");
    expect(deleted).toMatchObject({ type: "DELETED", object: { metadata: { name: "copied" } } });
    const versions = [metadata, added?.object.metadata, deleted?.object.metadata].map((each) =>
      Number(each?.resourceVersion),
    );
    expect(versions).toEqual([...versions].sort((one, other) => one - other));
    const rows = await table.until((events) => events.length === 2);
    expect(rows.map(({ type, object }) => [type, object.kind, object.rows?.[0]?.cells[0]])).toEqual([
      ["ADDED", "Table", "copied"],
      ["DELETED", "Table", "copied"],
    ]);
    expect(elsewhere.events).toEqual([]);
    const later = await watch(`${IN_DEFAULT}?watch=1&resourceVersion=${versions[1]}`);
    expect((await later.until((events) => events.length === 1))[0]).toMatchObject({ type: "DELETED" });
    for (const each of [plain, table, elsewhere, later]) await each.end();
    expect((await ask(`${IN_DEFAULT}?watch=1&resourceVersion=1`)).status).toBe(410);
  });

  it("are watched from what there is, with a bookmark where one is asked for", async () => {
    const initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    const listed = await watch(`${IN_DEFAULT}?watch=1&${initial}`);
    const events = await listed.until((all) => all.length === names.length + 1);
    expect(events.map(({ type, object }) => [type, object.metadata.name])).toEqual([
      ...names.map((name) => ["ADDED", name]),
      ["BOOKMARK", undefined],
    ]);
    expect(events.at(-1)?.object.metadata).toMatchObject({
      annotations: { "k8s.io/initial-events-end": "true" },
    });
    const one = await watch(`${IN_DEFAULT}?watch=1&fieldSelector=metadata.name%3D${names[1]}`);
    const [shown] = await one.until((all) => all.length === 1);
    expect(shown).toMatchObject({ type: "ADDED", object: { metadata: { name: names[1] } } });
    for (const each of [listed, one]) await each.end();
    const short = await ask(`${IN_DEFAULT}?watch=1&timeoutSeconds=1&resourceVersion=`, "lister");
    expect(short.text.trim().split("\n")).toHaveLength(names.length);
  });

  it("are shown one by one, with how they ended", async () => {
    const { status, json } = await ask(`${IN_DEFAULT}/${names[0]}?watch=1`, "lister");
    expect(status).toBe(200);
    expect(json()).toMatchObject({
      kind: "Recording",
      metadata: { name: names[0], namespace: "default" },
      spec: { pod: "web", command: ["echo", expect.any(String)], rule: "all" },
      status: { end: "completed", gaps: 0, fileBytes: readFileSync(fileOf(names[0] ?? "")).byteLength },
    });
    expect((await ask(`${IN_DEFAULT}/..%2F..%2Fsigning-key`)).status).toBe(400);
    for (const target of ["missing", "other"])
      expect((await ask(`${IN_DEFAULT}/${target}`)).status).toBe(404);
    expect((await ask(`${PREFIX}/namespaces/other/recordings/${names[0]}`)).status).toBe(404);
  });

  it("have their content streamed, whole or in part", async () => {
    const target = `${IN_DEFAULT}/${names[0]}/content`;
    const stored = readFileSync(fileOf(names[0] ?? ""), "utf8");
    const whole = await ask(target, "auditor");
    expect([whole.status, whole.text]).toEqual([200, stored]);
    expect(whole.headers.get("content-type")).toBe("application/x-asciicast");
    expect(whole.headers.get("content-length")).toBe(String(Buffer.byteLength(stored)));
    const ranges = [
      ["bytes=0-9", 206, stored.slice(0, 10)],
      ["bytes=-10", 206, stored.slice(-10)],
      [`bytes=${stored.length - 3}-`, 206, stored.slice(-3)],
      ["bytes=5-999999999", 206, stored.slice(5)],
      ["bytes=999999999-", 416, ""],
      ["bytes=-0", 416, ""],
      ["bytes=0-1,4-5", 200, stored],
      ["lines=1-2", 200, stored],
    ] as const;
    for (const [range, status, text] of ranges) {
      const part = await ask(target, "auditor", { headers: { Range: range } });
      expect([range, part.status, part.text]).toEqual([range, status, text]);
    }
  });

  it("open their file for a client that reads, not for one that left before", async () => {
    const content = async (name: string, range: string) => {
      const at = { resource: RECORDINGS, namespace: "default", name, subresource: "content" };
      const request = {
        method: "GET",
        query: new URLSearchParams(),
        accept: "",
        userName: "",
        body: undefined,
        follow: () => () => {},
      };
      const { body } = await new RecordingsApi({
        own: new FolderRecordings(folder),
      }).answer(at, {
        ...request,
        range,
      });
      if (body instanceof Uint8Array) throw new Error("the content is streamed");
      return body[Symbol.asyncIterator]();
    };
    for (const range of ["", "bytes=0-9"]) {
      const left = await content(names[0] ?? "", range);
      await left.return?.();
      await once(createReadStream(fileOf(names[0] ?? "")).resume(), "close");
      expect(openFiles().filter((file) => file.startsWith(folder))).toEqual([]);
      const gone = fileOf(names[0] ?? "").replace(names[0] ?? "", "gone");
      const text = readFileSync(fileOf(names[0] ?? ""), "utf8");
      writeFileSync(gone, text.replaceAll(names[0] ?? "", "gone"));
      const vanished = await content("gone", range);
      rmSync(gone);
      await expect(vanished.next()).rejects.toMatchObject({ code: "ENOENT" });
    }
  });

  it("need a permission for each verb, and one of its own for the content", async () => {
    const refused = [
      [`${IN_DEFAULT}/${names[0]}/content`, "lister", "GET"],
      [IN_DEFAULT, "auditor", "GET"],
      [`${IN_DEFAULT}/${names[0]}`, "auditor", "GET"],
      [`${IN_DEFAULT}?watch=1`, "auditor", "GET"],
      [`${IN_DEFAULT}/${names[0]}`, "lister", "DELETE"],
    ] as const;
    for (const [target, token, method] of refused)
      expect((await ask(target, token, { method })).status).toBe(403);
    expect((await ask(`${IN_DEFAULT}/${names[0]}/content`, "admin", { method: "PUT" })).status).toBe(405);
    expect((await ask(IN_DEFAULT, "admin", { method: "DELETE" })).status).toBe(405);
    expect((await ask(`${IN_DEFAULT}/${names[0]}/other`)).status).toBe(404);
    expect(filesIn(folder, ".cast")).toHaveLength(4);
  });

  it("are no longer sent once their reader may no longer read them", async () => {
    const name = names[0] ?? "";
    const large = fileOf(name).replace(name, "large");
    const [header = "", ...rest] = readFileSync(fileOf(name), "utf8").replaceAll(name, "large").split("\n");
    writeFileSync(large, [header, `# ${"x".repeat(64 * 1024 * 1024)}`, ...rest].join("\n"));
    const download = await fetch(`http://${gateway.authority}${IN_DEFAULT}/large/content`, {
      headers: { Authorization: "Bearer auditor-token" },
    });
    const reader = download.body?.getReader();
    expect((await reader?.read())?.value?.byteLength).toBeGreaterThan(0);
    const cluster = files.read("cluster.json");
    const { items, ...list } = JSON.parse(cluster) as { items: { metadata: { name: string } }[] };
    files.write(
      "cluster.json",
      JSON.stringify({ ...list, items: items.filter(({ metadata }) => metadata.name !== "auditor") }),
    );
    // The client reads nothing meanwhile: what waits in buffers must not keep the answer alive.
    await eventually("the answer is aborted", () => gateway.log().includes("answer aborted"));
    expect(gateway.log()).toContain("the download was ended");
    const rest64 = (async () => {
      while ((await reader?.read())?.done === false);
    })();
    await expect(rest64).rejects.toThrow();
    files.write("cluster.json", cluster);
    rmSync(large);
  });

  it("are deleted, with a line that remains and an audit event", async () => {
    const name = names[1] ?? "";
    const target = `${IN_DEFAULT}/${name}`;
    expect((await ask(`${target}?dryRun=All`, "admin", { method: "DELETE" })).status).toBe(200);
    expect(fileOf(name)).not.toBe("");
    const { status, json } = await ask(target, "admin", { method: "DELETE" });
    expect(status).toBe(200);
    expect(json()).toMatchObject({
      kind: "Status",
      status: "Success",
      details: { name, kind: "recordings" },
    });
    expect(fileOf(name)).toBe("");
    expect((await ask(target)).status).toBe(404);
    const line = JSON.parse(readFileSync(path.join(folder, "deleted.jsonl"), "utf8"));
    expect(line).toMatchObject({ reason: "the API, by admin", head: expect.stringContaining('"head"') });
    await eventually("the audit event", () =>
      files
        .read("audit.log")
        .split("\n")
        .some((each) => each.includes('"verb":"delete"') && each.includes('"resource":"recordings"')),
    );
  });
});

function openFiles(): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      return [];
    }
  });
}

interface Named {
  readonly metadata: { readonly name: string };
}
