import { spawnSync } from "node:child_process";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { systemDisk } from "../../../src/recording/thread/disk.ts";
import { partOf, RecordingFile } from "../../../src/recording/thread/recording-file.ts";
import { SessionWriter } from "../../../src/recording/thread/session-writer.ts";
import { sluiceCommand } from "../../support/built-program.ts";
import { play } from "../../support/recording/played.ts";
import { FACTS } from "../../support/recording/recorded-facts.ts";
import { Sluice } from "../../support/sluice.ts";

const { privateKey } = generateKeyPairSync("ed25519");
const SESSION = "b0067496-5131-8817-b1db-3a742a88991d";
const OTHER = "b0067496-5131-87fc-ab2d-e03104d0cfc6";
const sluice = new Sluice({});
const folder = mkdtempSync(path.join(tmpdir(), "sluice-redacted-"));
const day = path.join(folder, "2026/11/28");
const file = path.join(day, `${SESSION}.cast`);
const key = path.join(folder, "key.pem");

beforeAll(async () => {
  mkdirSync(day, { recursive: true });
  writeFileSync(key, createPublicKey(privateKey).export({ type: "spki", format: "pem" }));
  const part = new RecordingFile(systemDisk, file, partOf(file, "w"));
  const facts = { ...FACTS, session: SESSION, user: "ana@example.com", command: ["login", "--pin=4711"] };
  const writer = new SessionWriter(part, { facts, maxOutputBytes: 1024 * 1024 }, privateKey);
  // A shell echoes each key as it comes, and a read may end anywhere.
  const echoed = [..."$ login hunter2\r\n"].map((character) => Buffer.from(character));
  const rest = [Buffer.from("token: s3cr"), Buffer.from("et\u0007\xff", "latin1"), Buffer.from("!\r\n")];
  for (const [index, bytes] of [...echoed, ...rest].entries()) writer.output("stdout", index * 10, bytes);
  writer.output("stderr", 900, Buffer.from("hun"));
  writer.output("stdout", 910, Buffer.from("ter2 of two streams\r\n"));
  writer.end(1_000, Date.UTC(2026, 10, 28), "completed", 0);
  expect(writer.flush(1_000)).toBeUndefined();
  expect(await new Promise((resolve) => part.finish(resolve))).toBeNull();
});
afterAll(() => rmSync(folder, { recursive: true }));

const redact = (...texts: string[]) =>
  sluice.run(["recordings", "export", file, ...texts.flatMap((text) => ["--redact", text])]);

it("leaves out a text that events share, and no other event", async () => {
  const { exitCode, stdout, stderr } = await redact("hunter2", "s3cret");
  expect([exitCode, stderr]).toEqual([0, ""]);
  const { shown, of } = play(stdout);
  expect(shown).toBe("$ login \r\n!\r\nhunter2 of two streams\r\n");
  expect(of("b")).toEqual([]);
  const copy = path.join(folder, "copy.cast");
  writeFileSync(copy, stdout);
  const verified = await sluice.run(["recordings", "verify", copy, "--key", key]);
  expect(verified.stdout).toBe(`${copy}: unchanged (10 lines are redacted)\n`);
});

it("warns of a text that is in no event", async () => {
  const { exitCode, stdout, stderr } = await redact("hunter3", "hunter2");
  expect([exitCode, stderr]).toEqual([0, "warning: no event has 1 of the 2 texts to redact\n"]);
  expect(play(stdout).shown).not.toContain("hunter2\r\n$");
});

it.each([["ana@example.com"], ["api-7d"]])("refuses %s, which stays in the header", async (text) => {
  const refusal = `sluice recordings: ${file} has this text in its header, beside the command line\n`;
  expect(await redact(text)).toEqual({ exitCode: 1, stdout: "", stderr: refusal });
});

it("is not made from a pipe, which cannot be read twice", () => {
  const exported = (...args: string[]) => {
    const command = sluiceCommand("recordings", "export", "/dev/stdin", ...args).flat();
    const { status, stdout, stderr } = spawnSync("sh", ["-c", 'cat "$0" | "$@"', file, ...command], {
      encoding: "utf8",
    });
    return { exitCode: status, stdout, stderr };
  };
  const refusal =
    "sluice recordings: /dev/stdin is a pipe, which --redact cannot read twice: save it first\n";
  expect(exported("--redact", "hunter2")).toEqual({ exitCode: 1, stdout: "", stderr: refusal });
  const { exitCode, stdout } = exported("--redact-command");
  expect([exitCode, play(stdout).shown.length > 0, stdout.includes("4711")]).toEqual([0, true, false]);
});

it("finds a text in the command line, if that is left out", async () => {
  const args = ["recordings", "export", file, "--redact", "4711", "--redact-command"];
  const { exitCode, stdout, stderr } = await sluice.run(args);
  expect([exitCode, stderr, stdout.includes("4711")]).toEqual([0, "", false]);
});

it("verify finds a recording that has another session's name", async () => {
  const args = ["recordings", "verify", "--key", key];
  expect(await sluice.run([...args, file])).toMatchObject({ exitCode: 0, stdout: `${file}: unchanged\n` });
  const misnamed = path.join(day, `${OTHER}.cast`);
  copyFileSync(file, misnamed);
  const { exitCode, stdout } = await sluice.run([...args, misnamed]);
  expect(stdout).toBe(`${misnamed}: misnamed: it is the recording of session ${SESSION}\n`);
  expect(exitCode).toBe(1);
  expect(readFileSync(misnamed)).toEqual(readFileSync(file));
});
