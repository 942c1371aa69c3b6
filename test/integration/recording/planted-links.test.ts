import { createHash } from "node:crypto";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { AuditFile } from "../../../src/access/audit/audit-file.ts";
import { readSigningKey } from "../../../src/recording/signing-key.ts";
import { applyRetention } from "../../../src/recording/storage/apply-retention.ts";
import { deleteRecording } from "../../../src/recording/storage/delete-recording.ts";
import { Uploader } from "../../../src/recording/storage/s3/uploader.ts";
import { systemDisk } from "../../../src/recording/thread/disk.ts";
import { ReserveFile, reserveOf, WriterLease } from "../../../src/recording/thread/writer-lease.ts";
import { settingsOf } from "../../support/recording/recorded-gateway.ts";

let folder: string;
let target: string;
let before: { text: string; mtimeMs: number; mode: number };
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-links-"));
  target = path.join(folder, "target");
  mkdirSync(path.join(folder, "recordings"));
  writeFileSync(target, "of somebody else", { mode: 0o644 });
  before = state();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const state = () => {
  const { mtimeMs, mode } = lstatSync(target);
  return { text: readFileSync(target, "utf8"), mtimeMs, mode };
};
const at = (name: string): string => path.join(folder, "recordings", name);
/** A link at this name of the folder leads to the target. */
function plant(name: string): string {
  mkdirSync(path.dirname(at(name)), { recursive: true });
  rmSync(at(name), { force: true });
  symlinkSync(target, at(name));
  return at(name);
}
const isOwn = (file: string): boolean => lstatSync(file).isFile() && (lstatSync(file).mode & 0o777) === 0o600;

it("the list of deleted recordings is not written through a link, and nothing is deleted", async () => {
  writeFileSync(at("a.cast"), "line\n");
  plant("deleted.jsonl");
  await expect(deleteRecording(at(""), at("a.cast"), "age")).rejects.toThrow("ELOOP");
  expect(state()).toEqual(before);
  expect(readFileSync(at("a.cast"), "utf8")).toBe("line\n");
});

it("the clock of retention replaces a link", async () => {
  plant("retention-clock.json.new");
  plant("retention-clock.json");
  await applyRetention(at(""), { maxAgeMs: 1_000, maxTotalBytes: 0 });
  expect(state()).toEqual(before);
  expect(isOwn(at("retention-clock.json"))).toBe(true);
});

it("the mark of an upload replaces a link, which is no mark itself", async () => {
  const sha256 = createHash("sha256").update("recorded").digest("hex");
  const store = createServer((request, response) => {
    request.resume();
    const headers = { "x-amz-meta-sha256": sha256, "content-length": "8" };
    response.writeHead(200, request.method === "HEAD" ? headers : {}).end();
  });
  await new Promise<void>((resolve) => store.listen(0, "127.0.0.1", resolve));
  process.env.AWS_ACCESS_KEY_ID = "an-id";
  process.env.AWS_SECRET_ACCESS_KEY = "a-secret-key";
  try {
    writeFileSync(at("a.cast"), "recorded");
    plant("a.cast.uploaded");
    await applyRetention(at(""), { maxAgeMs: 0, maxTotalBytes: 0, keepUploadedMs: 0 });
    expect(readdirSync(at(""))).toContain("a.cast");
    const { port } = store.address() as AddressInfo;
    const section = { endpoint: `http://127.0.0.1:${port}`, bucket: "recordings" };
    const { s3 } = settingsOf(at(""), { s3: section });
    if (s3 === undefined) throw new Error("the section is there");
    expect(await new Uploader(at(""), s3).round(true)).toMatchObject({ uploaded: 1, failed: 0 });
  } finally {
    store.closeAllConnections();
    store.close();
  }
  expect(state()).toEqual(before);
  expect(isOwn(at("a.cast.uploaded"))).toBe(true);
});

it("keys are neither read nor written through links", async () => {
  const pem = await readSigningKey(at(""), undefined);
  const [name = ""] = readdirSync(at("keys"));
  const publicKey = readFileSync(at(`keys/${name}`), "utf8");
  plant(`keys/${name}`);
  expect(await readSigningKey(at(""), undefined)).toBe(pem);
  expect(state()).toEqual(before);
  expect(readFileSync(at(`keys/${name}`), "utf8")).toBe(publicKey);
  writeFileSync(target, pem);
  plant("signing-key.pem");
  await expect(readSigningKey(at(""), undefined)).rejects.toThrow("ELOOP");
  rmSync(at("signing-key.pem"));
  rmSync(at("keys"), { recursive: true });
  mkdirSync(path.join(folder, "elsewhere"));
  symlinkSync(path.join(folder, "elsewhere"), at("keys"));
  await expect(readSigningKey(at(""), undefined)).rejects.toThrow("is a link");
  expect(readdirSync(path.join(folder, "elsewhere"))).toEqual([]);
});

it("leases and reserved space are not written through links", () => {
  const lease = new WriterLease(at(""), "w");
  plant("writers/w.json");
  lease.renew();
  expect(() => new WriterLease(at(""), "w")).toThrow("EEXIST");
  plant("reserve-w");
  const reserve = new ReserveFile(reserveOf(at(""), "w"));
  expect(state()).toEqual(before);
  expect(isOwn(at("reserve-w"))).toBe(true);
  reserve.release();
  lease.end();
});

it("no recording begins in a folder that a link leads to", () => {
  mkdirSync(path.join(folder, "elsewhere"));
  symlinkSync(path.join(folder, "elsewhere"), at("2026"));
  expect(() => systemDisk.create(at("2026/11/28/a.cast.w.part"))).toThrow("is a link");
  plant("2025/11/28/a.cast.w.part");
  expect(() => systemDisk.create(at("2025/11/28/a.cast.w.part"))).toThrow("EEXIST");
  expect(state()).toEqual(before);
});

it.skipIf(process.getuid?.() !== 0)("an audit log follows no link of another user", async () => {
  const link = plant("audit.log");
  const options = { path: link, maxBytes: 1_000, maxAgeDays: 0, maxBackups: 1 };
  const log = new AuditFile(options);
  const { lchownSync } = await import("node:fs");
  lchownSync(link, 12_345, 12_345);
  await expect(log.append(["event"])).rejects.toThrow("ELOOP");
  expect(state()).toEqual(before);
  // The operator's own link leads where it should.
  lchownSync(link, 0, 0);
  await log.append(["event"]);
  await log.close();
  expect(readFileSync(target, "utf8")).toContain("event");
});
