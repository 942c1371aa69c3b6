import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { execPath, WebSocketExecutor } from "../../../packages/client/src/index.ts";
import { collect } from "../../support/kubectl.ts";
import { play } from "../../support/recording/played.ts";
import { RecordedGateway } from "../../support/recording/recorded-gateway.ts";
import { Sluice } from "../../support/sluice.ts";

const sluice = new Sluice({});
let gateway: RecordedGateway;
let file = "";
let id = "";
let text = "";

beforeAll(async () => {
  gateway = await RecordedGateway.start();
  const script =
    "printf 'one secret-word s\u00e9cret\\r\\n\\377'; printf '\\033]52;c;ZXZpbA==\\007\\033[1mbold'; echo error >&2; exit 4";
  const path = execPath({ namespace: "default", pod: "web", container: "main" }, ["sh", "-c", script]);
  const sink = { takePart: () => undefined };
  await new WebSocketExecutor(gateway.target, path).stream({ stdout: sink, stderr: sink });
  [file = ""] = await gateway.recordings();
  text = readFileSync(file, "utf8");
  id = String((play(text).header.sluice as { session: string }).session);
});
afterAll(() => gateway.stop());

describe("sluice recordings", () => {
  it("list and show say who did what, and how it ended", async () => {
    const list = await sluice.run(["recordings", "list", "--folder", gateway.folder]);
    expect(list.stdout).toContain("tester");
    expect(list.stdout).toContain("exec default/web");
    expect(list.stdout).toContain("exit 4");
    expect(list.stdout).toContain(id);
    // Sorted by their start, not by their names.
    const later = path.join(path.dirname(file), "0-later.cast");
    writeFileSync(later, text.replace(/"startedAt":"\d+/, '"startedAt":"9999'));
    const both = await sluice.run(["recordings", "list", "--folder", gateway.folder]);
    rmSync(later);
    expect(both.stdout.trim().split("\n").at(-1)).toContain("9999-");
    const show = await sluice.run(["recordings", "show", "--folder", gateway.folder, id, "-o", "json"]);
    expect(JSON.parse(show.stdout)).toMatchObject({ session: id, exitCode: "4", head: { gaps: 0 } });
  });

  it("list and show print as kubectl's formats do", async () => {
    const list = async (output: string, folder = gateway.folder) =>
      await sluice.run(["recordings", "list", "--folder", folder, "-o", output]);
    expect((await list("name")).stdout).toBe(`${id}\n`);
    const [head = "", row = ""] = (await list("wide")).stdout.split("\n");
    expect(head).toMatch(/^STARTED .+ ID +CONTAINER +NODE +RULE +BYTES +GAPS +FILE$/);
    expect(row).toMatch(/ main +node +all +\d+ +0 +\/.+\.cast$/);
    const { stdout: json } = await list("json");
    const documents = [...parseAllDocuments((await list("yaml")).stdout, { version: "1.1" })];
    expect(documents.map((each) => each.toJS())).toEqual([JSON.parse(json)]);
    const show = await sluice.run(["recordings", "show", file, "-o", "yaml"]);
    expect(parse(show.stdout, { version: "1.1" })).toEqual(JSON.parse(json));
    const empty = mkdtempSync(path.join(tmpdir(), "sluice-empty-"));
    const outputs = ["name", "wide", "json", "yaml"].map((output) => list(output, empty));
    const wide = { exitCode: 0, stdout: "", stderr: `No recordings found in ${empty}.\n` };
    const none = { ...wide, stderr: "" };
    expect(await Promise.all(outputs)).toEqual([none, wide, none, none]);
    rmSync(empty, { recursive: true });
  });

  it("verify knows the folder's key, or the given ones, and finds a change", async () => {
    const verified = await sluice.run(["recordings", "verify", gateway.folder]);
    expect(verified).toMatchObject({ exitCode: 0, stdout: `${file}: unchanged\n` });
    const byId = await sluice.run(["recordings", "verify", "--folder", gateway.folder, id, "absent"]);
    expect(byId).toEqual({
      exitCode: 1,
      stdout: `${file}: unchanged\n`,
      stderr: `sluice recordings: ${gateway.folder} has no recording absent\n`,
    });
    const other = path.join(gateway.folder, "other.pem");
    const { publicKey } = generateKeyPairSync("ed25519");
    writeFileSync(other, publicKey.export({ type: "spki", format: "pem" }));
    const unknown = await sluice.run(["recordings", "verify", file, "--key", other]);
    expect(unknown).toMatchObject({ exitCode: 1, stdout: expect.stringContaining("unknown-key") });
    writeFileSync(file, text.replace("secret-word", "secret-w0rd"));
    const changed = await sluice.run(["recordings", "verify", file]);
    writeFileSync(file, text);
    expect(changed).toMatchObject({ exitCode: 1, stdout: expect.stringContaining("changed at chunk 1") });
  });

  it("export leaves out what is redacted, and still verifies", async () => {
    const args = ["recordings", "export", file, "--redact", "secret-word", "--redact-command"];
    const { stdout } = await sluice.run(args);
    expect(stdout).not.toContain("secret-word");
    const copy = path.join(path.dirname(file), "copy.cast");
    writeFileSync(copy, stdout);
    const verified = await sluice.run(["recordings", "verify", copy]);
    expect(verified.stdout).toMatch(
      /copy\.cast: unchanged \([1-3] lines are redacted; of the header only session and start are proven\)\n/,
    );
    expect(verified.exitCode).toBe(0);
    writeFileSync(copy, stdout.replace('"error\\n"', '"err0r\\n"'));
    expect(await sluice.run(["recordings", "verify", copy])).toMatchObject({ exitCode: 1 });
    writeFileSync(copy, text);
  });

  it("export redacts exact bytes, and refuses a text that it would leave in the command line", async () => {
    const args = ["recordings", "export", file, "--redact", "s\u00e9cret"];
    expect(await sluice.run(args)).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: `sluice recordings: ${file} has this text in its command line: add --redact-command\n`,
    });
    const { stdout } = await sluice.run([...args, "--redact-command"]);
    const exact = stdout.split("\n").flatMap((line) => /^\[[^,]+, "b", "(.+)"\]$/.exec(line)?.[1] ?? []);
    expect(Buffer.from(exact.join(""), "base64").toString()).not.toContain("s\u00e9cret");
    expect(play(stdout).of("m")).toContain("redacted");
  });

  it("export has other forms", async () => {
    const exported = async (...more: string[]) =>
      (await sluice.run(["recordings", "export", file, "--format", ...more])).stdout;
    expect(await exported("text", "--stream", "stderr")).toBe("error\n");
    expect(await exported("text", "--stream", "stdout")).toBe("one secret-word s\u00e9cret\n\ufffdbold");
    const [header = "", ...events] = (await exported("asciicast-v2")).trimEnd().split("\n");
    expect(JSON.parse(header)).toMatchObject({ version: 2, width: 80, height: 24 });
    expect(events.map((line) => JSON.parse(line)[1]).every((code) => code === "o")).toBe(true);
    const odd = path.join(gateway.folder, "odd.cast");
    const keys = [..."ls\b", "\u001b[Ks\r", "\n"].map((data) => `${JSON.stringify([0, "o", data])}\n`);
    writeFileSync(odd, `{"version":3,"term":{"cols":9,"rows":9}}\n${keys.join("")}`);
    const typed = await sluice.run(["recordings", "export", odd, "--format", "text"]);
    expect(typed.stdout).toBe("ls\n");
    writeFileSync(
      odd,
      '{"version":3,"term":{"cols":9,"rows":9},"timestamp":1e999}\n[0,"","a"]\n[0,"oi","b"]\n',
    );
    const { stdout } = await sluice.run(["recordings", "export", odd, "--format", "asciicast-v2"]);
    rmSync(odd);
    expect(stdout).toBe('{"version":2,"width":9,"height":9}\n');
  });

  it("replay shows it, without what attacks the terminal", async () => {
    const { stdout, exitCode } = await sluice.run(["replay", "--folder", gateway.folder, id, "--idle", "0s"]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain("\u001b[1mbold");
    expect(stdout).not.toContain("52;c;");
    const raw = await sluice.run(["replay", file, "--raw", "--idle", "0s"]);
    expect(raw.stdout).toContain("\u001b]52;c;ZXZpbA==\u0007");
  });

  it("replay and export take no time that is not a number, and wait as long as a long one says", async () => {
    const foreign = path.join(mkdtempSync(path.join(tmpdir(), "sluice-times-")), "times.cast");
    const header = '{"version":3,"term":{"cols":80,"rows":24}}';
    writeFileSync(foreign, `${header}\n[1e999,"o","a"]\n[-1e999,"o","b"]\n[0,"o","c"]\n`);
    expect(await sluice.run(["replay", foreign])).toEqual({ exitCode: 0, stdout: "c", stderr: "" });
    const shown = await sluice.run(["recordings", "show", foreign, "-o", "json"]);
    expect(JSON.parse(shown.stdout)).toMatchObject({ seconds: 0 });
    // Longer than one timer of Node.js.
    writeFileSync(foreign, `${header}\n[0,"o","a"]\n[3e6,"o","b"]\n`);
    const playing = sluice.start(["replay", foreign]);
    const [stdout, stderr] = [collect(playing.stdout), collect(playing.stderr)];
    await once(playing.stdout, "data");
    playing.kill("SIGINT");
    await once(playing, "close");
    expect([playing.exitCode, stdout(), stderr()]).toEqual([130, "a", ""]);
    rmSync(path.dirname(foreign), { recursive: true });
  });

  it("of a newer format are shown with a warning, but not redacted", async () => {
    const newer = path.join(mkdtempSync(path.join(tmpdir(), "sluice-newer-")), "newer.cast");
    const format = text.match(/"format":(\d+)/)?.[1];
    writeFileSync(newer, text.replace(/"sluice":\{("format":\d+,)?/, '"sluice":{"format":99,'));
    const told = `${newer} has format 99, and this program reads ${format ?? 1}`;
    for (const args of [
      ["replay", newer, "--idle", "0s"],
      ["recordings", "show", newer],
      ["recordings", "export", newer, "--format", "text"],
    ]) {
      const { exitCode, stdout, stderr } = await sluice.run(args);
      expect([exitCode, stderr]).toEqual([0, `warning: ${told}: some of it may not be shown\n`]);
      expect(stdout).not.toBe("");
    }
    expect(await sluice.run(["recordings", "export", newer, "--redact", "secret-word"])).toMatchObject({
      ...{ exitCode: 1, stdout: "", stderr: `sluice recordings: ${told}\n` },
    });
    rmSync(path.dirname(newer), { recursive: true });
  });

  it.each([
    [["recordings"], "list, show"],
    [["recordings", "list"], "--folder"],
    [["recordings", "delete", "x"], "--folder"],
    [["replay"], "one recording"],
    [["recordings", "list", "--format", "raw"], "--format does not apply to sluice recordings list"],
    [["recordings", "show", "x.cast", "-o", "name"], "--output name does not apply"],
    [["recordings", "verify", "x.cast", "-o", "json"], "--output does not apply"],
    [["recordings", "show", "x.cast", "--redact", "a"], "--redact does not apply"],
    [["recordings", "export", "x.cast", "--key", "k.pem"], "--key does not apply"],
    [["recordings", "export", "x.cast", "--redact", "a", "--format", "raw"], "--redact"],
  ])("%j is a usage error", async (args, message) => {
    const { exitCode, stderr } = await sluice.run(args);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  describe("of a file that is not a recording", () => {
    let folder = "";
    const at = (name: string) => path.join(folder, name);
    beforeAll(() => {
      folder = mkdtempSync(path.join(tmpdir(), "sluice-no-recordings-"));
      writeFileSync(at("text.cast"), "root:x:0:0\nbin:x:1:1\n");
      writeFileSync(at("foreign.cast"), '{"version":3,"term":{"cols":80,"rows":24}}\n[0.1, "o", "hi"]\n');
      writeFileSync(at("empty.cast"), "");
      writeFileSync(at("older.cast"), '{"version": 2, "width": 80, "height": 24}\n[0.1, "o", "hi"]\n');
      writeFileSync(at("endless.cast"), '{"version":3,"term":{"cols":80,"rows":1e999}}\n[0,"o","hi"]\n');
      writeFileSync(at("key.pem"), "no key");
      const header = text.slice(0, text.indexOf("\n"));
      writeFileSync(at("null-head.cast"), `${header}\n# sluice {"head":null}\n# sluice {"head":{\n`);
      writeFileSync(at("damaged.cast"), text.replace('"o", "error', '"o", error'));
    });
    afterAll(() => rmSync(folder, { recursive: true }));

    it.each([
      ["replay text.cast", "sluice replay: AT/text.cast is not a recording"],
      [
        "replay older.cast",
        "sluice replay: AT/older.cast is an asciicast of version 2; only version 3 is read",
      ],
      ["replay empty.cast", "sluice replay: AT/empty.cast is not a recording"],
      ["replay absent.cast", "sluice replay: AT/absent.cast: no such file"],
      ["replay .", "sluice replay: AT/. is a folder"],
      ["recordings show text.cast", "sluice recordings: AT/text.cast is not a recording"],
      ["recordings export text.cast", "sluice recordings: AT/text.cast is not a recording"],
      [
        "recordings export endless.cast --format asciicast-v2",
        "sluice recordings: AT/endless.cast is not a recording",
      ],
      ["recordings export empty.cast", "sluice recordings: AT/empty.cast is not a recording"],
      ["recordings export text.cast --format raw", "sluice recordings: AT/text.cast is not a recording"],
      [
        "recordings export foreign.cast --redact a",
        "sluice recordings: AT/foreign.cast is not a recording of Sluice",
      ],
      [
        "recordings export damaged.cast --redact zz",
        "sluice recordings: AT/damaged.cast has a line that is not an event",
      ],
      ["recordings verify absent", "sluice recordings: AT/absent: no such file or folder"],
      [
        "recordings verify text.cast --key key.pem",
        "sluice recordings: AT/key.pem is not an Ed25519 public key (PEM)",
      ],
      ["recordings verify text.cast --key no.pem", "sluice recordings: AT/no.pem: no such file"],
      ["recordings list --folder absent", "sluice recordings: AT/absent: no such file or folder"],
      ["recordings show --folder . 0b6d", "sluice recordings: AT/. has no recording 0b6d"],
      ["recordings delete --folder . 0b6d", "sluice recordings: AT/. has no recording 0b6d"],
      [
        "recordings delete --folder . foreign",
        "sluice recordings: AT/foreign.cast is not a recording of Sluice",
      ],
    ])("%s is one line", async (line, message) => {
      const isName = (word: string) => /^(?:\.|absent|.+\.(?:cast|pem))$/.test(word);
      const args = line.split(" ").map((word) => (isName(word) ? `${folder}/${word}` : word));
      const { exitCode, stdout, stderr } = await sluice.run(args);
      expect([stderr, exitCode]).toEqual([`${message.replace("AT", folder)}\n`, 1]);
      if (!line.includes("damaged")) expect(stdout).toBe("");
    });

    it.each([
      ["text.cast", "not-a-recording: it does not begin as one"],
      ["empty.cast", "not-a-recording: it does not begin as one"],
      ["foreign.cast", "not-a-recording: it is not one of Sluice"],
    ])("verify says what %s is", async (name, verdict) => {
      const { exitCode, stdout, stderr } = await sluice.run(["recordings", "verify", at(name)]);
      expect([stdout, stderr, exitCode]).toEqual([`${at(name)}: ${verdict}\n`, "", 1]);
    });

    it("show and list accept heads that no recorder writes", async () => {
      const shown = await sluice.run(["recordings", "show", at("null-head.cast"), "-o", "json"]);
      expect(JSON.parse(shown.stdout)).not.toHaveProperty("head");
      const listed = await sluice.run(["recordings", "list", "--folder", folder]);
      expect([listed.exitCode, listed.stdout]).toEqual([0, expect.stringContaining("unfinished")]);
      expect(listed.stderr).toBe(
        [
          "empty is not a recording",
          "endless is not a recording",
          "older is an asciicast of version 2; only version 3 is read",
          "text is not a recording",
        ]
          .map((line) => `${at(line.replace(" ", ".cast "))}\n`)
          .join(""),
      );
    });
  });

  it("delete removes a recording, and leaves its head", async () => {
    // One that is not there keeps no other from being verified or deleted.
    const missing = path.join(gateway.folder, "absent");
    expect(await sluice.run(["recordings", "verify", missing, file])).toEqual({
      exitCode: 1,
      stdout: `${file}: unchanged\n`,
      stderr: `sluice recordings: ${missing}: no such file or folder\n`,
    });
    const deleted = await sluice.run(["recordings", "delete", "--folder", gateway.folder, "absent", id]);
    expect(deleted).toEqual({
      exitCode: 1,
      stdout: `${id} is deleted\n`,
      stderr: `sluice recordings: ${gateway.folder} has no recording absent\n`,
    });
    expect(existsSync(file)).toBe(false);
    expect(readFileSync(path.join(gateway.folder, "deleted.jsonl"), "utf8")).toContain(id);
    const gone = await sluice.run(["recordings", "show", "--folder", gateway.folder, id]);
    expect(gone).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("no recording") });
  });
});
