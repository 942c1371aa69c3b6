import { createHash, generateKeyPairSync } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { execPath, WebSocketExecutor } from "../../../packages/client/src/index.ts";
import { DEFAULT_SIZE, headerLine } from "../../../src/recording/format/asciicast.ts";
import { headLine, keyNameOf } from "../../../src/recording/format/signed-head.ts";
import { BucketIndex } from "../../../src/recording/storage/s3/bucket-index.ts";
import { FolderRecordings, RECORDING_PART_BYTES } from "../../../src/session-api/folder-recordings.ts";
import { PeerRecordings } from "../../../src/session-api/peer-recordings.ts";
import { RECORDINGS } from "../../../src/session-api/recording-object.ts";
import { RecordingsApi } from "../../../src/session-api/recordings-api.ts";
import { StoreRecordings } from "../../../src/session-api/store-recordings.ts";
import { newSessionId } from "../../../src/sessions/session-id.ts";
import { eventually } from "../../support/eventually.ts";
import { fixedBound } from "../../support/fixed-bound.ts";
import { FakeStore } from "../../support/recording/fake-store.ts";
import { FACTS } from "../../support/recording/recorded-facts.ts";
import { RecordedGateway, settingsOf } from "../../support/recording/recorded-gateway.ts";
import { issueCertificate } from "../../support/test-certificates.ts";

const BUCKET_LIST_MS = fixedBound("src/recording/storage/s3/bucket-index.ts", "BUCKET_LIST_MS");
const MAX_BUCKET_HEADER_BYTES = fixedBound(
  "src/recording/storage/s3/bucket-index.ts",
  "MAX_BUCKET_HEADER_BYTES",
);
const MAX_BUCKET_RECORDINGS = fixedBound("src/recording/storage/s3/bucket-index.ts", "MAX_BUCKET_RECORDINGS");
const MAX_BUCKET_WAIT_MS = fixedBound("src/recording/storage/s3/bucket-index.ts", "MAX_BUCKET_WAIT_MS");
const MAX_OBJECT_PAGES = fixedBound("src/recording/storage/s3/list-objects.ts", "MAX_OBJECT_PAGES");

const { privateKey } = generateKeyPairSync("ed25519");
const DAY = "recordings/2026/11/22";
const REFUSED_CERTIFICATE = "CERT_SIGNATURE_FAILURE";

let store: FakeStore;
let folder: string;
let ends: (() => void)[] = [];
beforeEach(async () => {
  store = await FakeStore.start();
  folder = mkdtempSync(path.join(tmpdir(), "sluice-stored-"));
  process.env.AWS_ACCESS_KEY_ID = "an-id";
  process.env.AWS_SECRET_ACCESS_KEY = "a-secret-key";
});
afterEach(async () => {
  for (const end of ends) end();
  ends = [];
  vi.useRealTimers();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

function cast(session: string, { namespace = "prod", output = "abc", command = FACTS.command } = {}): string {
  const head = {
    ...{ bytes: 3, chunks: 1, end: "completed", endedAt: FACTS.startedAt, gaps: 0, hash: "h", lines: 1 },
    ...{ key: keyNameOf(privateKey), session, startedAt: FACTS.startedAt },
  };
  const lines = [
    headerLine({ ...FACTS, session, namespace, command }, DEFAULT_SIZE),
    JSON.stringify([0, "o", output]),
    headLine(head, privateKey),
  ];
  return `${lines.join("\n")}\n`;
}
const keep = (session: string, options?: Parameters<typeof cast>[1]): void =>
  store.put(`${DAY}/${session}.cast`, cast(session, options));

function settings(more: object = {}) {
  const { s3 } = settingsOf(folder, { s3: { ...store.section, ...more } });
  if (s3 === undefined) throw new Error("the section is there");
  return s3;
}

function api(more: object = {}, maxIndexed?: number): RecordingsApi {
  const places = {
    own: new FolderRecordings(folder, maxIndexed),
    peers: new PeerRecordings(() => undefined),
    store: new StoreRecordings(settings(more)),
  };
  const opened = new RecordingsApi(places);
  ends.push(() => opened.stop());
  return opened;
}

async function ask(
  from: RecordingsApi,
  { name = "", subresource = "", method = "GET", range = "", query = "", namespace = "prod" },
) {
  const at = {
    resource: RECORDINGS,
    namespace,
    name: name || undefined,
    subresource: subresource || undefined,
  };
  const asked = { method, query: new URLSearchParams(query), accept: "", userName: "ana", body: undefined };
  const { status, headers, body } = await from.answer(at, { ...asked, range, follow: () => () => {} });
  return { status, headers, body };
}
const bodyOf = async ({ body }: Awaited<ReturnType<typeof ask>>): Promise<string> => {
  if (body instanceof Uint8Array) return Buffer.from(body).toString();
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts).toString();
};
async function list(from: RecordingsApi, query = "") {
  const answer = await ask(from, { query });
  const { items, metadata } = JSON.parse(await bodyOf(answer));
  const names = (items as { metadata: { name: string } }[]).map(({ metadata: { name } }) => name);
  return { names, metadata, warning: answer.headers.Warning };
}
function index(nowMs?: () => number, maxRecordings?: number): BucketIndex {
  const opened = new BucketIndex(settings(), undefined, nowMs, maxRecordings);
  ends.push(() => opened.stop());
  return opened;
}
const namesIn = async (from: BucketIndex) => {
  const { recordings, problem } = await from.list();
  return { names: recordings.map(({ facts }) => facts.session), problem };
};
/** The store answers requests that match with this. */
function failWith(pattern: RegExp, status: number, body: string): void {
  store.fault = (request, response) => {
    if (!pattern.test(request.url ?? "")) return false;
    response.writeHead(status).end(body);
    return true;
  };
}

describe("recordings that only the store has", () => {
  it("are listed beside the folder's, in pages, shown and read in parts", async () => {
    for (const session of ["a", "c", "e"]) keep(session);
    keep("other", { namespace: "default" });
    const file = path.join(folder, "2026/11/22");
    mkdirSync(file, { recursive: true });
    for (const session of ["b", "c"]) writeFileSync(path.join(file, `${session}.cast`), cast(session));
    const own = api();
    expect(await list(own)).toMatchObject({ names: ["a", "b", "c", "e"], warning: undefined });
    const first = await list(own, "limit=3");
    expect(first.names).toEqual(["a", "b", "c"]);
    expect((await list(own, `limit=3&continue=${first.metadata.continue}`)).names).toEqual(["e"]);
    expect((await list(own, "fieldSelector=metadata.name%3De")).names).toEqual(["e"]);
    const one = JSON.parse(await bodyOf(await ask(own, { name: "a" })));
    expect(one).toMatchObject({ metadata: { name: "a" }, spec: { command: FACTS.command } });
    const content = { name: "a", subresource: "content" };
    expect(await bodyOf(await ask(own, content))).toBe(cast("a"));
    const part = await ask(own, { ...content, range: "bytes=5-9" });
    expect([part.status, await bodyOf(part)]).toEqual([206, cast("a").slice(5, 10)]);
    await expect(ask(own, { name: "other" })).rejects.toMatchObject({ code: 404 });
  });

  it("may print what an error of the store looks like, have long lines, and be long", async () => {
    const text = "<Error><Code>InternalError</Code></Error>";
    const output = text.repeat(Math.ceil((2 * RECORDING_PART_BYTES) / text.length));
    keep("long", { output, command: ["sh", "-c", "x".repeat(100_000)] });
    const own = api();
    expect(await list(own)).toMatchObject({ names: ["long"], warning: undefined });
    const read = await bodyOf(await ask(own, { name: "long", subresource: "content" }));
    const digest = (each: string): string => createHash("sha256").update(each).digest("hex");
    const whole = cast("long", { output, command: ["sh", "-c", "x".repeat(100_000)] });
    expect(digest(read)).toBe(digest(whole));
    const parts = store.requests.filter((each) => / bytes=\d{7,}-/.test(each));
    expect(parts.length).toBeGreaterThanOrEqual(2);
  });

  it("may have a command as long as a request may be, which only the answer about one has", async () => {
    const command = ["sh", "-c", `: ${'"'.repeat(1_000_000)}`];
    for (const session of ["longest", "newer"]) keep(session, { command });
    const own = index();
    const { recordings, problem } = await own.list();
    expect(problem).toBeUndefined();
    // A list shows no command, so that fifty thousand recordings need little memory.
    expect(recordings.map(({ facts }) => [facts.session, facts.command.join("").length])).toEqual([
      ["longest", 0],
      ["newer", 0],
    ]);
    expect(await own.find("longest")).toMatchObject([{ facts: { command } }]);
    const read = JSON.parse(await bodyOf(await ask(api(), { name: "longest" })));
    expect(read.spec.command).toEqual(command);
  });

  it("have a header of so many bytes at most", async () => {
    keep("a");
    keep("longer", { command: ["x".repeat(MAX_BUCKET_HEADER_BYTES)] });
    expect(await namesIn(index())).toEqual({ names: ["a"], problem: undefined });
    expect(MAX_BUCKET_HEADER_BYTES).toBe(8 * 1024 * 1024);
  });

  it("are found by their names alone, whatever the list of the bucket answers", async () => {
    const [id, missing, empty] = Array.from({ length: 3 }, () =>
      newSessionId("0a1b2c3d", new Date("2026-11-22T12:00:00Z")),
    ) as [string, string, string];
    keep(id);
    store.put(`${DAY}/${empty}.cast`, "");
    failWith(/list-type/, 500, "<Error><Code>InternalError</Code></Error>");
    const own = api();
    expect((await ask(own, { name: id })).status).toBe(200);
    expect(await bodyOf(await ask(own, { name: id, subresource: "content" }))).toBe(cast(id));
    await expect(ask(own, { name: id, method: "DELETE" })).rejects.toMatchObject({ code: 409 });
    for (const name of [missing, empty])
      await expect(ask(own, { name })).rejects.toMatchObject({ code: 404 });
    failWith(/cast/, 404, "<Error><Code>NoSuchBucket</Code></Error>");
    await expect(ask(own, { name: missing })).rejects.toMatchObject({
      code: 503,
      message: expect.stringContaining("404 NoSuchBucket"),
    });
    expect(store.requests.filter((each) => each.includes("list-type"))).toEqual([]);
  });

  it("stay, and a delete says so", async () => {
    keep("a");
    await expect(ask(api(), { name: "a", method: "DELETE" })).rejects.toMatchObject({
      code: 409,
      message: expect.stringContaining("it is in the store"),
    });
    expect(store.objects.size).toBe(1);
  });

  it("are found though the object came since the last list", async () => {
    const own = api();
    expect((await list(own)).names).toEqual([]);
    keep("late");
    expect((await ask(own, { name: "late" })).status).toBe(200);
  });

  it("are those that a gateway uploaded", async () => {
    const gateway = await RecordedGateway.start({ recording: { s3: store.section } });
    try {
      const at = execPath({ namespace: "default", pod: "web", container: "main" }, ["echo", "uploaded"]);
      await new WebSocketExecutor(gateway.target, at).stream({ stdout: { takePart: () => undefined } });
      await eventually("the upload", () => store.objects.size === 1);
    } finally {
      await gateway.stop();
    }
    const own = api();
    const [key = ""] = store.objects.keys();
    const at = { namespace: "default", name: path.basename(key, ".cast"), subresource: "content" };
    const content = await bodyOf(await ask(own, at));
    expect(content).toContain("uploaded\\n");
  });
});

it("of a folder past its bound the newest are listed, and older ones are found", async () => {
  const keepOn = (day: string, session: string): void => {
    mkdirSync(path.join(folder, day), { recursive: true });
    writeFileSync(path.join(folder, day, `${session}.cast`), cast(session));
  };
  for (const [day, session] of [
    ["2026/11/20", "b"],
    ["2026/11/21", "a"],
  ] as const)
    keepOn(day, session);
  const own = api({}, 2);
  expect(await list(own)).toMatchObject({ names: ["a", "b"], warning: undefined });
  keepOn("2026/11/22", "c");
  const warning = expect.stringContaining("lacks the oldest recordings of a folder");
  expect(await list(own)).toMatchObject({ names: ["a", "c"], warning });
  expect(await list(own, "limit=1")).toMatchObject({ names: ["a"], warning });
  expect((await ask(own, { name: "b" })).status).toBe(200);
  await expect(ask(own, { query: "watch=1" })).rejects.toMatchObject({ code: 400 });
});

it("by a store whose authority changes are written and read by the file's new one, without a restart", async () => {
  const identityOf = async () => {
    const authority = await issueCertificate({ commonName: "store authority" });
    const own = await issueCertificate({ commonName: "store" }, authority, { addresses: ["127.0.0.1"] });
    return { ca: authority.cert, own };
  };
  const [before, after] = [await identityOf(), await identityOf()];
  const caFile = path.join(folder, "store-ca.crt");
  writeFileSync(caFile, before.ca);
  const secure = await FakeStore.start(before.own);
  const gateway = await RecordedGateway.start({ recording: { s3: { ...secure.section, caFile } } });
  ends.push(() => void secure.close());
  const record = async (): Promise<void> => {
    const at = execPath({ namespace: "default", pod: "web", container: "main" }, ["echo", "x"]);
    await new WebSocketExecutor(gateway.target, at).stream({ stdout: { takePart: () => undefined } });
  };
  const secured = settingsOf(folder, { s3: { ...secure.section, caFile } }).s3;
  const read = new StoreRecordings(secured, gateway.storeTrust);
  ends.push(() => read.stop());
  const find = async (at: number) => {
    const id = path.basename([...secure.objects.keys()][at] ?? "", ".cast");
    return (await read.find({ namespace: "default", id }))?.facts.session === id;
  };
  try {
    await record();
    await eventually("an upload", () => secure.objects.size === 1);
    expect(await find(0)).toBe(true);
    secure.replaceCertificate(after.own);
    await record();
    await eventually("an error", () => gateway.logLines.join("").includes(REFUSED_CERTIFICATE));
    await expect(find(0)).rejects.toThrow(REFUSED_CERTIFICATE);
    writeFileSync(caFile, "no certificate");
    await eventually("it is logged", () => gateway.logLines.join("").includes("could not be read again"));
    writeFileSync(caFile, after.ca);
    await eventually("another upload", () => secure.objects.size === 2);
    expect([await find(0), await find(1)]).toEqual([true, true]);
    expect(gateway.logLines.join("")).toContain('"use":"recordingStore"');
  } finally {
    await gateway.stop();
  }
}, 60_000);

describe("the list of a bucket", () => {
  it("goes through its pages, and takes nothing but recordings", async () => {
    store.pageSize = 2;
    for (const session of ["a", "b", "c", "d", "e"]) keep(session);
    store.put("recordings/keys/k.pem", "key");
    store.put(`${DAY}/wrong.cast`, cast("another"));
    store.put(`${DAY}/cut.cast`, cast("cut").slice(0, -30));
    store.put(`${DAY}/empty.cast`, "");
    store.put("elsewhere/2026/11/22/f.cast", cast("f"));
    store.put(`${DAY}/${"x".repeat(129)}.cast`, "x");
    const own = index();
    expect(await namesIn(own)).toEqual({ names: ["a", "b", "c", "d", "e"], problem: undefined });
    // The years, beside a folder of keys; the month; then nine objects in five pages.
    expect(store.requests.filter((each) => each.includes("list-type=2"))).toHaveLength(7);
  });

  it("is used for a while, and reads only what is new", async () => {
    let nowMs = 0;
    keep("a");
    const own = index(() => nowMs);
    await own.list();
    keep("b");
    nowMs = BUCKET_LIST_MS - 1;
    expect(await namesIn(own)).toEqual({ names: ["a"], problem: undefined });
    nowMs += 1;
    store.objects.delete(`${DAY}/a.cast`);
    expect(await namesIn(own)).toEqual({ names: ["b"], problem: undefined });
    expect(store.requests.filter((each) => each.includes("a.cast"))).toHaveLength(1);
  });

  it("has so many, the newest, and says so", async () => {
    for (const session of ["a", "b", "c"]) keep(session);
    const own = index(undefined, 2);
    expect(await namesIn(own)).toEqual({ names: ["b", "c"], problem: "it has too many objects" });
    expect(await own.find("a")).toMatchObject([{ facts: { session: "a" } }]);
    expect(MAX_BUCKET_RECORDINGS).toBe(50_000);
  });

  it("ends at a bound of pages with the newest days, and says so", async () => {
    store.pageSize = 1;
    const sessions = (day: number) =>
      Array.from({ length: 30 }, (_, index) => `day-${day}-${String(index).padStart(2, "0")}`);
    for (const day of [1, 2, 3, 4, 5, 6])
      for (const session of sessions(day))
        store.put(`recordings/2026/11/0${day}/${session}.cast`, cast(session));
    store.put("recordings/2025/12/31/old.cast", cast("old"));
    const { names, problem } = await namesIn(index());
    expect(problem).toBe("it has too many objects");
    expect(names).toEqual(expect.arrayContaining([...sessions(5), ...sessions(6)]));
    expect(names).not.toContain("old");
    expect(store.requests.filter((each) => each.includes("list-type=2"))).toHaveLength(MAX_OBJECT_PAGES);
  });

  it("has each recording of long months once, and of all years", async () => {
    store.pageSize = 1;
    const keys = ["2024/02/29", "2025/12/31", "2026/11/01", "2026/11/02", "2026/11/03"].flatMap((day, of) =>
      Array.from({ length: of < 2 ? 1 : 7 }, (_, index) => `recordings/${day}/s-${of}-${index}.cast`),
    );
    for (const key of keys) store.put(key, cast(path.basename(key, ".cast")));
    const own = index();
    expect(await namesIn(own)).toEqual({
      names: keys.map((key) => path.basename(key, ".cast")),
      problem: undefined,
    });
    for (const key of keys)
      expect(store.requests.filter((each) => each.includes(`${key} bytes=0-`))).toHaveLength(1);
  });

  it("stops at its bound of pages if those do not end, and says so", async () => {
    let pages = 0;
    store.fault = (_, response) => {
      pages += 1;
      const next = `<NextContinuationToken>${pages}</NextContinuationToken>`;
      response.end(`<ListBucketResult><IsTruncated>true</IsTruncated>${next}</ListBucketResult>`);
      return true;
    };
    expect(await namesIn(index())).toEqual({ names: [], problem: "it has too many objects" });
    expect(pages).toBe(MAX_OBJECT_PAGES);
  });

  it.each([
    ["refuses", 403, "<Error><Code>AccessDenied</Code></Error>", "403 AccessDenied"],
    ["fails", 500, "<Error><Code>InternalError</Code></Error>", "500 InternalError"],
    ["fails with 200", 200, "<Error><Code>SlowDown</Code></Error>", "200 SlowDown"],
    ["answers with a page", 200, "<html>Log in</html>", "200 no list"],
    ["cuts its answer", 200, "<ListBucketResult><Contents>", "200 no list"],
    [
      "repeats a page",
      200,
      "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
      "200 its pages do not go on",
    ],
  ])("of a store that %s lacks what is there, and says so", async (_, status, body, problem) => {
    keep("a");
    writeFileSync(path.join(folder, "b.cast"), cast("b"));
    failWith(/list-type/, status, body);
    const own = api();
    const { names, warning } = await list(own);
    expect(names).toEqual(["b"]);
    expect(warning).toBe(
      `299 - "the list may lack recordings of the store: the list of the bucket: ${problem}"`,
    );
    await expect(ask(own, { name: "a" })).rejects.toMatchObject({
      code: 503,
      message: expect.stringContaining(problem),
    });
    await expect(ask(own, { name: "b", method: "DELETE" })).rejects.toMatchObject({ code: 503 });
  });

  it("names a wrong file of credentials only in the log's words", async () => {
    const credentialsFile = path.join(folder, "credentials");
    writeFileSync(credentialsFile, "aws_access_key_id = s3cret\n");
    const { warning } = await list(api({ credentialsFile }));
    expect(warning).toContain("its credentials cannot be read");
    expect(warning).not.toMatch(/s3cret|sluice-stored/);
  });

  it("keeps what was read of a store that fails now, and of objects of which one cannot be read", async () => {
    let nowMs = 0;
    for (const session of ["a", "b"]) keep(session);
    failWith(/b\.cast/, 403, "<Error><Code>AccessDenied</Code></Error>");
    const own = index(() => nowMs);
    const problem = "the read of a recording: 403 AccessDenied";
    expect(await namesIn(own)).toEqual({ names: ["a"], problem });
    failWith(/list-type/, 403, "");
    nowMs += BUCKET_LIST_MS;
    expect(await namesIn(own)).toEqual({ names: ["a"], problem: "the list of the bucket: 403 AccessDenied" });
    store.fault = () => false;
    nowMs += BUCKET_LIST_MS;
    expect(await namesIn(own)).toEqual({ names: ["a", "b"], problem: undefined });
  });

  it("of a bucket that hangs is waited for so long", async () => {
    keep("a");
    store.fault = () => true;
    writeFileSync(path.join(folder, "b.cast"), cast("b"));
    const own = api();
    const startMs = performance.now();
    const [{ names, warning }, refused] = await Promise.all([
      list(own),
      ask(own, { name: "a" }).catch((error: Error) => error),
    ]);
    expect(names).toEqual(["b"]);
    expect(warning).toContain("the store: it is still being read");
    expect(refused).toMatchObject({ code: 503, message: expect.stringContaining("it does not answer") });
    expect(performance.now() - startMs).toBeLessThan(3 * MAX_BUCKET_WAIT_MS);
  });
});

it("content that the store cuts short fails, and is not ended as if it were whole", async () => {
  keep("a", { output: "x".repeat(2 * RECORDING_PART_BYTES) });
  const own = api();
  await list(own);
  store.fault = (request, response) => {
    if (!/bytes=1048576-/.test(request.headers.range ?? "")) return false;
    response.writeHead(206).end("short");
    return true;
  };
  await expect(bodyOf(await ask(own, { name: "a", subresource: "content" }))).rejects.toThrow("another part");
});
