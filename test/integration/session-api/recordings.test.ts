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
import type { FakeNode } from "../../../packages/lab/src/fake-node/index.ts";
import { FolderRecordings } from "../../../src/session-api/folder-recordings.ts";
import { RECORDINGS } from "../../../src/session-api/recording-object.ts";
import { NO_RECORDINGS, RecordingsApi } from "../../../src/session-api/recordings-api.ts";
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
  clusterRole("lister", resourceRule("list,get|sluice.dev|recordings")),
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

const fileOf = (name: string): string =>
  filesIn(folder, ".cast").find((file) => path.basename(file, ".cast") === name) ?? "";

describe("recordings of the API group", () => {
  it("are discovered with their subresource", async () => {
    const { resources } = (await ask(PREFIX)).json();
    expect(resources).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ name: "recordings", kind: "Recording", verbs: ["delete", "get", "list"] }),
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
    expect((await ask(`${IN_DEFAULT}?watch=1`)).status).toBe(405);
  });

  it("are shown one by one, with how they ended", async () => {
    const { status, json } = await ask(`${IN_DEFAULT}/${names[0]}`, "lister");
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
      };
      const { body } = await new RecordingsApi({
        ...NO_RECORDINGS,
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
      [`${IN_DEFAULT}/${names[0]}`, "lister", "DELETE"],
    ] as const;
    for (const [target, token, method] of refused)
      expect((await ask(target, token, { method })).status).toBe(403);
    expect((await ask(`${IN_DEFAULT}/${names[0]}/content`, "admin", { method: "PUT" })).status).toBe(405);
    expect((await ask(IN_DEFAULT, "admin", { method: "DELETE" })).status).toBe(405);
    expect((await ask(`${IN_DEFAULT}/${names[0]}/other`)).status).toBe(404);
    expect(filesIn(folder, ".cast")).toHaveLength(4);
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
