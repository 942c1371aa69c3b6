import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { execPath, WebSocketExecutor } from "../../packages/client/src/index.ts";
import { asciinemas, describeReal } from "../support/real-parts.ts";
import { play } from "../support/recording/played.ts";
import { RecordedGateway } from "../support/recording/recorded-gateway.ts";
import { Sluice } from "../support/sluice.ts";

/** Version 3 begins raw output with the size of the terminal. */
const SIZE = new RegExp(`^${String.fromCharCode(27)}\\[8;\\d+;\\d+t`);

describeReal("asciinema", "asciinema's own player", () => {
  let gateway: RecordedGateway;
  let folder: string;
  let file = "";
  let shown = "";

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "sluice-asciinema-"));
    gateway = await RecordedGateway.start();
    // Everything that a recording has: a size, colours, both kinds of text, an exit code, and our own events.
    const script =
      "stty size; printf '\\033[31mred\\033[0m gr\\303\\274n \\377 \\n'; seq 1 200; stty cols 90; exit 3";
    const at = execPath({ namespace: "default", pod: "web", container: "main" }, ["bash", "-c", script]);
    async function* sizes() {
      yield { width: 132, height: 43 };
    }
    const streams = { stdout: { takePart: () => undefined }, tty: true, terminalSizes: sizes() };
    await new WebSocketExecutor(gateway.target, at).stream(streams);
    [file = ""] = await gateway.recordings();
    shown = play(readFileSync(file, "utf8")).shown;
    expect(shown).toContain("200\r\n");
  });
  afterAll(async () => {
    await gateway?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const environment = () => {
    const own = { HOME: folder, ASCIINEMA_CONFIG_HOME: folder, LC_ALL: "C.UTF-8", TERM: "xterm" };
    return { ...process.env, ...own };
  };
  const run = (program: string, ...args: string[]): string =>
    execFileSync(program, args, {
      encoding: "utf8",
      env: environment(),
      timeout: 60_000,
      stdio: ["ignore", "pipe", "pipe"],
    });
  const exportVersion2 = async (): Promise<string> => {
    const exported = path.join(folder, "exported.cast");
    const { stdout } = await new Sluice({}).run(["recordings", "export", file, "--format", "asciicast-v2"]);
    writeFileSync(exported, stdout);
    return exported;
  };

  const all = asciinemas();
  for (const [major, needs] of [
    ["2", "pip install asciinema==2.4.0"],
    ["3", "cargo install --locked asciinema --version 3.2.0"],
  ] as const) {
    if (!all.some(({ version }) => version.startsWith(`${major}.`)))
      it.skip(`asciinema ${major} (needs ${needs})`);
  }

  for (const { version, path: program } of all.filter((found) => found.version.startsWith("2.")))
    it(`${version} shows what an export in version 2 has, and plays it to its end`, async () => {
      const exported = await exportVersion2();
      expect(run(program, "cat", exported)).toBe(shown);
      expect(run(program, "play", "--speed", "20", exported)).toContain("200");
    });

  describe.each(all.filter((found) => !found.version.startsWith("2.")))("$version", ({ path: program }) => {
    /** As `cat` showed one recording before version 3. */
    const showing = (recording: string): string => {
      const raw = path.join(folder, "raw");
      run(program, "convert", "--overwrite", "-f", "raw", recording, raw);
      return readFileSync(raw, "utf8").replace(SIZE, "");
    };
    /** On a terminal: there is no playing without one. */
    const playing = (recording: string): string =>
      run("script", "-qec", `'${program}' play --speed 20 '${recording}'`, "/dev/null");

    it("shows and plays an export in version 2", async () => {
      const exported = await exportVersion2();
      expect(showing(exported)).toBe(shown);
      expect(playing(exported)).toContain("200");
    });

    it("shows, converts and plays the recording itself", () => {
      expect(showing(file)).toBe(shown);
      const text = path.join(folder, "recording.txt");
      run(program, "convert", file, text);
      expect(readFileSync(text, "utf8")).toContain("gr\u00fcn");
      expect(playing(file)).toContain("200");
    });

    it("joins recordings, each at its end", async () => {
      const joined = path.join(folder, "joined.cast");
      writeFileSync(joined, run(program, "cat", file, file));
      expect(showing(joined)).toBe(`${shown}${shown}`);
    });
  });
});
