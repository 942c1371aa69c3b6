import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { execPath, WebSocketExecutor } from "../../../packages/client/src/index.ts";
import type { RecordingStore } from "../../../src/config/sections/recording.ts";
import { S3Store } from "../../../src/recording/storage/s3/s3-store.ts";
import { PART_BYTES } from "../../../src/recording/storage/s3/upload-file.ts";
import { sweepUploads, Uploader } from "../../../src/recording/storage/s3/uploader.ts";
import { eventually } from "../../support/eventually.ts";
import { fixedBound } from "../../support/fixed-bound.ts";
import { RecordedGateway, settingsOf } from "../../support/recording/recorded-gateway.ts";

const MAX_ATTEMPTS = fixedBound("src/recording/storage/s3/s3-store.ts", "MAX_ATTEMPTS");
const MAX_S3_ANSWER_BYTES = fixedBound("src/recording/storage/s3/s3-store.ts", "MAX_S3_ANSWER_BYTES");
const MAX_SKEW_MS = fixedBound("src/recording/storage/s3/s3-store.ts", "MAX_SKEW_MS");
const MAX_UPLOAD_AGE_MS = fixedBound("src/recording/storage/s3/uploader.ts", "MAX_UPLOAD_AGE_MS");

const MIB = 1024 * 1024;

/** The store's answers; at first it forbids everything. */
let answer: RequestListener;
let store: Server;
let gateway: RecordedGateway | undefined;
beforeEach(async () => {
  answer = (_, response) => response.writeHead(403).end("<Error><Code>AccessDenied</Code></Error>");
  store = createServer((request, response) => {
    request.resume();
    answer(request, response);
  });
  process.env.AWS_ACCESS_KEY_ID = "an-id";
  process.env.AWS_SECRET_ACCESS_KEY = "a-secret-key";
  await new Promise<void>((resolve) => {
    store.listen(0, "127.0.0.1", resolve);
  });
});
afterEach(async () => {
  await gateway?.stop();
  store.closeAllConnections();
  store.close();
});

function section(): { endpoint: string; bucket: string } {
  const { port } = store.address() as AddressInfo;
  return { endpoint: `http://127.0.0.1:${port}`, bucket: "recordings" };
}

function settings(): RecordingStore {
  const { s3 } = settingsOf("/", { s3: section() });
  if (s3 === undefined) throw new Error("the section is there");
  return s3;
}

async function run(
  from: RecordedGateway,
  stdin: Readable | undefined,
  ...command: string[]
): Promise<number> {
  let bytes = 0;
  const stdout = {
    takePart: (part: Uint8Array): undefined => {
      bytes += part.byteLength;
    },
  };
  const at = execPath({ namespace: "default", pod: "web", container: "main" }, command);
  await new WebSocketExecutor(from.target, at).stream({ stdout, ...(stdin && { stdin }) });
  return bytes;
}

describe("recordings that cannot be uploaded", () => {
  it("are kept and logged, and past their bound no new recording begins", async () => {
    gateway = await RecordedGateway.start({
      recording: {
        rules: [
          { name: "input", match: { stdin: true } },
          { name: "rest", recordOnFailure: "continue" },
        ],
        s3: { ...section(), maxWaitingBytes: "1Mi" },
      },
    });
    const own = gateway;
    expect(await run(own, undefined, "head", "-c", String(2 * MIB), "/dev/zero")).toBe(2 * MIB);
    await own.recordings();
    await eventually("a round of uploads", async () => (await waitingBytes(own)) > MIB);
    // Another process uploads from now on, and reports the waiting bytes.
    writeFileSync(path.join(own.folder, "writers/0.json"), '{"host":"another","pid":1,"started":"1"}');
    const ofWaiting = "sluice_recording_upload_";
    await eventually("no gauge of waiting", async () => (await own.metric(ofWaiting)).length === 0);
    await expect(run(own, Readable.from([]), "true")).rejects.toThrow(/none can be written now/);
    expect(await run(own, undefined, "echo", "unrecorded")).toBe("unrecorded\n".length);
    expect(await own.recordings(1)).toHaveLength(1);
    const lines = own.logLines.join("");
    expect(lines).toContain('"problem":"the begin of an upload: 403 AccessDenied"');
    expect(lines).toContain('"problem":"too many recordings wait for their upload"');
    expect(lines).not.toMatch(/an-id|a-secret-key/);
    expect(await own.metric('sluice_recording_uploads_total{result="failed"}')).toHaveLength(1);
  });
});

it("recordings that wait for a store that never answers are counted, and bound new ones", async () => {
  answer = () => {};
  const s3 = { ...section(), maxWaitingBytes: "1Mi" };
  gateway = await RecordedGateway.start({ recording: { s3 } });
  const own = gateway;
  expect(await run(own, undefined, "head", "-c", String(2 * MIB), "/dev/zero")).toBe(2 * MIB);
  await eventually("the count of what waits", async () => (await waitingBytes(own)) > MIB);
  await expect(run(own, undefined, "true")).rejects.toThrow(/none can be written now/);
});

async function waitingBytes(from: RecordedGateway): Promise<number> {
  const [line = "0"] = await from.metric("sluice_recording_upload_waiting_bytes");
  return Number(line.split(" ").at(-1));
}

describe("a store", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), "sluice-uploads-"));
    writeFileSync(path.join(folder, "a.cast"), "recorded");
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it("that answers no request is tried a few times, and again later", async () => {
    let puts = 0;
    answer = (request, response) => {
      if (request.method === "PUT") puts += 1;
      else response.writeHead(403).end();
    };
    const uploader = new Uploader(folder, { ...settings(), requestTimeoutMs: 100 });
    expect(await uploader.round(true)).toMatchObject({
      failed: 1,
      waiting: 1,
      problem: "the upload of a recording: timeout",
    });
    expect(puts).toBe(MAX_ATTEMPTS);
    expect(await uploader.round(true)).toMatchObject({ failed: 0, waiting: 1 });
    expect(puts).toBe(MAX_ATTEMPTS);
  });

  it("whose answer does not end is not read to its end", async () => {
    let written = 0;
    answer = (request, response) => {
      if (request.method !== "PUT") return void response.writeHead(403).end();
      const part = Buffer.alloc(64 * 1024, "x");
      const more = (): void => {
        for (let hasRoom = true; hasRoom && !response.destroyed; written += part.byteLength)
          hasRoom = response.write(part);
      };
      response.on("drain", more);
      more();
      return undefined;
    };
    const { problem } = await new Uploader(folder, settings()).round(true);
    expect(problem).toBe("the upload of a recording: the answer is too long");
    expect(written).toBeGreaterThan(MAX_S3_ANSWER_BYTES);
  });

  it("that answers with a proxy's page has stored nothing", async () => {
    writeFileSync(path.join(folder, "b.cast"), "recorded");
    const requests: string[] = [];
    answer = (request, response) => {
      requests.push(`${request.method} ${request.url}`);
      response.writeHead(200, { etag: '"page"' }).end("<html>Please log in</html>");
    };
    expect(await new Uploader(folder, settings()).round(true)).toMatchObject({
      uploaded: 0,
      failed: 1,
      waiting: 2,
      problem: "the check of an upload: 200 NotStored",
    });
    expect(readdirSync(folder)).toEqual(["a.cast", "b.cast"]);
    expect(requests.slice(1)).toEqual([
      expect.stringMatching(/^PUT .*[.]cast$/),
      expect.stringMatching(/^HEAD .*[.]cast$/),
    ]);
  });

  it("that answers without a code of S3 is named by its status alone", async () => {
    const problems: (string | undefined)[] = [];
    for (const status of [302, 400, 404]) {
      answer = (request, response) => {
        response.writeHead(request.method === "PUT" ? status : 404).end("<html>Not here</html>");
      };
      problems.push((await new Uploader(folder, settings()).round(true)).problem);
    }
    const upload = "the upload of a recording";
    expect(problems).toEqual([
      `${upload}: 302 without a code of S3`,
      `${upload}: 400 without a code of S3`,
      `${upload}: 404 NotFound`,
    ]);
  });

  it("that reports another length or digest has another object", async () => {
    const sha256 = createHash("sha256").update("recorded").digest("hex");
    const problems: (string | undefined)[] = [];
    for (const headers of [
      { "x-amz-meta-sha256": sha256, "content-length": "7" },
      { "x-amz-meta-sha256": "0", "content-length": "8" },
      { "x-amz-meta-sha256": sha256, "content-length": "8" },
    ]) {
      answer = (request, response) => {
        response.writeHead(200, request.method === "HEAD" ? headers : {}).end();
      };
      problems.push((await new Uploader(folder, settings()).round(true)).problem);
    }
    const other = "the check of an upload: 200 another object has this name";
    expect(problems).toEqual([other, other, undefined]);
    expect(readdirSync(folder)).toEqual(["a.cast", "a.cast.uploaded"]);
  });

  it("that ends a multipart upload with a truncated error has not stored it", async () => {
    writeFileSync(path.join(folder, "a.cast"), Buffer.alloc(PART_BYTES + 1));
    const ends: string[] = [];
    answer = (request, response) => {
      if (request.method === "POST" && request.url?.includes("uploadId=")) {
        ends.push(request.method);
        response.end("<Error><Code>InternalError</Code>");
      } else if (request.method === "POST") response.end("<UploadId>u</UploadId>");
      else if (request.method === "PUT") response.writeHead(200, { etag: '"e"' }).end();
      else {
        if (request.method === "DELETE") ends.push(request.method);
        response.writeHead(request.method === "DELETE" ? 204 : 404).end();
      }
    };
    expect(await new Uploader(folder, settings()).round(true)).toMatchObject({
      uploaded: 0,
      problem: "the end of an upload: 200 InternalError",
    });
    expect(ends).toEqual([...Array(MAX_ATTEMPTS).fill("POST"), "DELETE"]);
    expect(readdirSync(folder)).toEqual(["a.cast"]);
  });

  it.each([
    ["absurd", "Fri, 01 Jan 275760 00:00:00 GMT", 0],
    ["a day and an hour ahead", new Date(Date.now() + MAX_SKEW_MS + 3_600_000).toUTCString(), 0],
    ["an hour less than a day behind", new Date(Date.now() - 23 * 3_600_000).toUTCString(), -23],
  ])("whose clock is %s is believed up to a day", async (_, date, hours) => {
    const signed: number[] = [];
    const sha256 = createHash("sha256").update("recorded").digest("hex");
    answer = (request, response) => {
      const [, year, month, day, hour, minute, second] =
        /^(....)(..)(..)T(..)(..)(..)/.exec(String(request.headers["x-amz-date"])) ?? [];
      const atMs = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
      // Rounded it is -0, which is not 0 to `toBe`.
      signed.push(Math.round((atMs - Date.now()) / 3_600_000) || 0);
      if (signed.length === 1) response.writeHead(403, { date }).end();
      else if (request.method === "GET") response.end();
      else
        response
          .writeHead(
            200,
            request.method === "HEAD" ? { "x-amz-meta-sha256": sha256, "content-length": "8" } : {},
          )
          .end();
    };
    expect(await new Uploader(folder, settings()).round(true)).toMatchObject({ uploaded: 1, failed: 0 });
    expect(signed[0]).toBe(0);
    expect(signed.slice(1)).toEqual(signed.slice(1).map(() => hours));
  });

  it("loses unfinished uploads of our recordings, and those older than a day", async () => {
    const pages = [uploadOf("own", 0) + uploadOf("young", MAX_UPLOAD_AGE_MS - 60_000)];
    const requests: string[] = [];
    answer = (request, response) => {
      requests.push(`${request.method} ${request.url}`);
      const page = pages.shift() ?? uploadOf("old", MAX_UPLOAD_AGE_MS + 1);
      response.end(pageOf(page, `k${requests.length}`));
    };
    expect(await sweep((key) => key === "recordings/own")).toBe(100);
    const aborts = requests.filter((request) => request.startsWith("DELETE"));
    expect(aborts[0]).toBe("DELETE /recordings/recordings/own?uploadId=own-1");
    expect(aborts.slice(1)).toEqual(Array(99).fill("DELETE /recordings/recordings/old?uploadId=old-1"));
    const lists = requests.filter((request) => request.startsWith("GET"));
    expect(lists).toHaveLength(100);
    expect(lists[1]).toContain("key-marker=k1&upload-id-marker=u");
  });

  it("that does not abort one of the unfinished uploads is asked for the others", async () => {
    const old = MAX_UPLOAD_AGE_MS + 1;
    answer = (request, response) => {
      if (request.method === "GET") response.end(pageOf(uploadOf("gone", old) + uploadOf("old", old), ""));
      else if (!request.url?.includes("gone")) response.end();
      else response.writeHead(404).end("<Error><Code>NoSuchUpload</Code></Error>");
    };
    expect(await sweep(() => false)).toBe(1);
  });

  it("that repeats a page of uploads is asked for no further page", async () => {
    let lists = 0;
    answer = (request, response) => {
      if (request.method === "GET") lists += 1;
      response.end(pageOf(uploadOf("old", MAX_UPLOAD_AGE_MS + 1), "k"));
    };
    expect(await sweep(() => false)).toBe(2);
    expect(lists).toBe(2);
  });

  it("loses no object if its list of uploads is malformed", async () => {
    const old = MAX_UPLOAD_AGE_MS + 1;
    const odd = [
      uploadOf("without", old).replace(/<UploadId>.*<.UploadId>/, ""),
      uploadOf("../../other/object", old),
      uploadOf("a/./b", old),
      uploadOf("a?b c+%41", old),
    ];
    const aborts: string[] = [];
    answer = (request, response) => {
      if (request.method === "DELETE") aborts.push(request.url ?? "");
      response.end(request.method === "GET" ? pageOf(odd.join(""), "") : "");
    };
    expect(await sweep(() => false)).toBe(1);
    expect(aborts).toEqual(["/recordings/recordings/a%3Fb%20c%2B%2541?uploadId=a%3Fb+c%2B%2541-1"]);
  });
});

function uploadOf(key: string, ageMs: number): string {
  const initiated = new Date(Date.now() - ageMs).toISOString();
  const text = `<Key>recordings/${key}</Key><UploadId>${key}-1</UploadId><Initiated>${initiated}</Initiated>`;
  return `<Upload>${text}</Upload>`;
}

/** `marker`: of the next page. */
function pageOf(uploads: string, marker: string): string {
  const next = `<NextKeyMarker>${marker}</NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker>`;
  return `<R><IsTruncated>${marker !== ""}</IsTruncated>${next}${uploads}</R>`;
}

async function sweep(isOwn: (key: string) => boolean): Promise<number> {
  const opened = await S3Store.open({
    settings: settings(),
    signal: new AbortController().signal,
    trust: { ca: undefined },
  });
  try {
    return await sweepUploads(opened, isOwn);
  } finally {
    opened.close();
  }
}
