import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { execPath, WebSocketExecutor } from "../../packages/client/src/index.ts";
import type { RecordingStore } from "../../src/config/sections/recording.ts";
import { BucketIndex } from "../../src/recording/storage/s3/bucket-index.ts";
import { Uploader } from "../../src/recording/storage/s3/uploader.ts";
import { eventually } from "../support/eventually.ts";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";
import { describeReal } from "../support/real-parts.ts";
import { RecordedGateway, settingsOf } from "../support/recording/recorded-gateway.ts";
import { ACCESS_KEY, SECRET_KEY, VersitygwProcess } from "../support/recording/versitygw-process.ts";

const BUCKET = "recordings";
const KEY = "recordings/2026/11/26";
const HOUR_MS = 60 * 60_000;

/** What a fault answers: an error of S3 with this status. */
function errorAnswer(status: string, code: string): string {
  const body = `<?xml version="1.0"?><Error><Code>${code}</Code><Message>m</Message></Error>`;
  return `HTTP/1.1 ${status}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
}

/** 15 seconds on a quiet machine. */
describeReal("versitygw", "recordings in an S3-compatible store", () => {
  let store: VersitygwProcess;
  let proxy: FaultProxy;
  /** Answers of the proxy itself, in turn, by the beginning of the requests they are for. */
  let faults: [RegExp, string][] = [];
  let requests = 0;
  let folder: string;
  let credentialsFile: string;

  beforeAll(async () => {
    store = await VersitygwProcess.start();
    for (const bucket of [BUCKET, "locked"]) {
      const headers = bucket === "locked" ? ["x-amz-bucket-object-lock-enabled: true"] : [];
      expect(store.curl("PUT", `/${bucket}`, headers).status).toBe(200);
    }
    proxy = await startFaultProxy(store.port, {
      cutAfterBytes: Number.POSITIVE_INFINITY,
      maxCuts: 0,
      answer: (head) => {
        requests += 1;
        const index = faults.findIndex(([pattern]) => pattern.test(head));
        return index === -1 ? undefined : faults.splice(index, 1)[0]?.[1];
      },
    });
  });
  afterAll(async () => {
    await proxy?.close();
    await store?.stop();
  });
  beforeEach(() => {
    faults = [];
    folder = mkdtempSync(path.join(tmpdir(), "sluice-s3-"));
    credentialsFile = path.join(folder, "credentials");
    useCredentials(SECRET_KEY);
    mkdirSync(path.join(folder, "2026/11/26"), { recursive: true });
  });
  afterEach(() => {
    vi.useRealTimers();
    rmSync(folder, { recursive: true, force: true });
  });

  const useCredentials = (secret: string): void =>
    writeFileSync(
      credentialsFile,
      `[other]\naws_access_key_id = no\n[default]\naws_access_key_id = ${ACCESS_KEY}\naws_secret_access_key=${secret}\n`,
    );
  const s3 = (more: object = {}): object => ({
    endpoint: `http://127.0.0.1:${proxy.port}`,
    bucket: BUCKET,
    credentialsFile,
    requestTimeout: "5s",
    ...more,
  });
  const uploaderFor = (more: object = {}, nowMs?: () => number): Uploader => {
    const settings = settingsOf(folder, { s3: s3(more) }).s3;
    if (settings === undefined) throw new Error("the section is there");
    return new Uploader(folder, settings, undefined, nowMs);
  };
  /** A finished recording of so many bytes; returns its id. */
  const leave = (bytes: number): { id: string; file: string; content: Buffer } => {
    const id = randomBytes(8).toString("hex");
    const content = randomBytes(bytes);
    const file = path.join(folder, "2026/11/26", `${id}.cast`);
    writeFileSync(file, content);
    return { id, file, content };
  };
  const stored = (id: string, bucket = BUCKET): Buffer => {
    const { status, text } = store.curl("GET", `/${bucket}/${KEY}/${id}.cast`);
    expect(status).toBe(200);
    return Buffer.from(text, "latin1");
  };
  const openUploads = (): number =>
    store.curl("GET", `/${BUCKET}?uploads=`).text.split("<UploadId>").length - 1;

  it("arrive whole, also in parts and through a store that fails now and then", async () => {
    const [small, large] = [leave(1_000), leave(20 * 1024 * 1024)];
    faults = [
      [/^PUT .*cast HTTP/, errorAnswer("503 Slow Down", "SlowDown")],
      [/^POST .*uploads=/, errorAnswer("500 Internal Server Error", "InternalError")],
      [/^PUT .*partNumber=2&/, ""],
      [/^POST .*uploadId=/, errorAnswer("200 OK", "InternalError")],
    ];
    expect(await uploaderFor().round(true)).toMatchObject({ uploaded: 2, failed: 0, waiting: 0 });
    expect(faults).toEqual([]);
    expect(stored(small.id).equals(small.content)).toBe(true);
    expect(stored(large.id).equals(large.content)).toBe(true);
    expect(openUploads()).toBe(0);
    expect(JSON.parse(readFileSync(`${small.file}.uploaded`, "utf8"))).toMatchObject({
      bucket: BUCKET,
      key: `${KEY}/${small.id}.cast`,
      bytes: 1_000,
    });
    expect(await uploaderFor().round(true)).toMatchObject({ uploaded: 0, waiting: 0 });
  });

  it("wait while the store fails, end no upload in part, and go on from there", async () => {
    const large = leave(9 * 1024 * 1024);
    faults = Array.from({ length: 4 }, () => [/partNumber=2&/, errorAnswer("503 Slow Down", "SlowDown")]);
    let nowMs = Date.now();
    const uploader = uploaderFor({}, () => nowMs);
    expect(await uploader.round(true)).toMatchObject({
      failed: 1,
      waiting: 1,
      waitingBytes: large.content.byteLength,
      problem: "the upload of a part: 503 SlowDown",
    });
    expect(openUploads()).toBe(0);
    expect(existsSync(`${large.file}.uploaded`)).toBe(false);
    // The next round comes a second later, and earlier calls only count.
    nowMs += 999;
    expect(await uploader.round(true)).toMatchObject({ uploaded: 0, failed: 0, waiting: 1 });
    nowMs += 1;
    expect(await uploader.round(true)).toMatchObject({ uploaded: 1, failed: 0, waiting: 0 });
    expect(stored(large.id).equals(large.content)).toBe(true);
  });

  it("have their left uploads aborted by the next start", async () => {
    const { id } = leave(1_000);
    for (const key of [`${KEY}/${id}.cast`, `${KEY}/of-another-gateway.cast`])
      expect(store.curl("POST", `/${BUCKET}/${key}?uploads=`).status).toBe(200);
    expect(openUploads()).toBe(2);
    expect(await uploaderFor().round(true)).toMatchObject({ uploaded: 1 });
    const { text } = store.curl("GET", `/${BUCKET}?uploads=`);
    expect(text).toContain("of-another-gateway");
    expect(text).not.toContain(id);
    const [, uploadId] = /<UploadId>([^<]+)/.exec(text) ?? [];
    store.curl("DELETE", `/${BUCKET}/${KEY}/of-another-gateway.cast?uploadId=${uploadId}`);
  });

  it("replace nothing, and one that cannot be uploaded holds up no other", async () => {
    const first = leave(1_000);
    expect(await uploaderFor().round(true)).toMatchObject({ uploaded: 1 });
    rmSync(`${first.file}.uploaded`);
    // As after a lost answer: the object is there already.
    expect(await uploaderFor().round(true)).toMatchObject({ uploaded: 1, failed: 0 });
    rmSync(`${first.file}.uploaded`);
    writeFileSync(first.file, "something else");
    const second = leave(1_000);
    expect(await uploaderFor().round(true)).toMatchObject({
      uploaded: 1,
      failed: 1,
      problem: "the upload of a recording: 412 another object has this name",
    });
    expect(stored(first.id).equals(first.content)).toBe(true);
    expect(stored(second.id).equals(second.content)).toBe(true);
  });

  it("wait for right credentials, which are read without a restart and never shown", async () => {
    const { id, content } = leave(1_000);
    useCredentials("wrong-secret");
    const uploader = uploaderFor();
    const round = await uploader.round(true);
    expect(round).toMatchObject({
      failed: 1,
      problem: "the upload of a recording: 403 SignatureDoesNotMatch",
    });
    writeFileSync(credentialsFile, "[default]\n");
    await eventually("a round without credentials", async () => {
      const { problem } = await uploader.round(true);
      expect(JSON.stringify([round, problem])).not.toMatch(/secret-of|wrong-secret/);
      return problem?.includes("has no aws_access_key_id");
    });
    useCredentials(SECRET_KEY);
    await eventually("a round with the right ones", async () => (await uploader.round(true)).uploaded === 1);
    expect(stored(id).equals(content)).toBe(true);
  });

  it("arrive although this machine's clock is an hour off", async () => {
    const { id, content } = leave(1_000);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - HOUR_MS });
    requests = 0;
    expect(await uploaderFor().round(true)).toMatchObject({ uploaded: 1, failed: 0 });
    vi.useRealTimers();
    // The first is refused, and tells the time: the list of uploads, once more, the upload, its check.
    expect(requests).toBe(4);
    expect(stored(id).equals(content)).toBe(true);
  });

  it("wait for a bucket that is missing, and for a store that is gone", async () => {
    leave(1_000);
    expect((await uploaderFor({ bucket: "missing" }).round(true)).problem).toContain("404 NoSuchBucket");
    proxy.isRefusing = true;
    try {
      expect((await uploaderFor().round(true)).problem).toContain("ECONNRESET");
    } finally {
      proxy.isRefusing = false;
    }
  });

  it("are locked, so that not even the store's owner deletes one", async () => {
    const [small, large] = [leave(1_000), leave(9 * 1024 * 1024)];
    const objectLock = { mode: "COMPLIANCE", retention: "2h" };
    expect(await uploaderFor({ bucket: "locked", objectLock }).round(true)).toMatchObject({ uploaded: 2 });
    for (const { id, file } of [small, large]) {
      const { version } = JSON.parse(readFileSync(`${file}.uploaded`, "utf8"));
      const target = `/locked/${KEY}/${id}.cast`;
      const [, until = ""] =
        /<RetainUntilDate>([^<]+)/.exec(store.curl("GET", `${target}?retention=`).text) ?? [];
      expect(Math.abs(Date.parse(until) - Date.now() - 2 * HOUR_MS)).toBeLessThan(60_000);
      expect(store.curl("DELETE", `${target}?versionId=${version}`).status).toBe(403);
    }
  });

  it("come from a running gateway, which counts them and keeps them for a while", async () => {
    const gateway = await RecordedGateway.start({ recording: { s3: s3() } });
    try {
      const at = execPath({ namespace: "default", pod: "web", container: "main" }, ["echo", "uploaded"]);
      const stdout = { takePart: () => undefined };
      await new WebSocketExecutor(gateway.target, at).stream({ stdout });
      const [file = ""] = await gateway.recordings();
      await eventually("the upload", () => existsSync(`${file}.uploaded`));
      const id = path.basename(file, ".cast");
      const key = path.relative(gateway.folder, file);
      const { text } = store.curl("GET", `/${BUCKET}/recordings/${key}`);
      expect(text).toBe(readFileSync(file, "latin1"));
      expect(text).toContain(id);
      const index = new BucketIndex(settingsOf(folder, { s3: s3() }).s3 as RecordingStore);
      const [found] = await index.find(id);
      expect((await index.list()).recordings.map(({ facts }) => facts.session)).toContain(id);
      expect(found && (await index.part(found, 5, 10)).toString("latin1")).toBe(text.slice(5, 15));
      index.stop();
      await eventually("the count", async () =>
        (await gateway.metric("sluice_recording_uploads_total")).some((line) => line.endsWith(" 1")),
      );
    } finally {
      await gateway.stop();
    }
  });
});
