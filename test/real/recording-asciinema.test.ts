import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { execPath, WebSocketExecutor } from "../../packages/client/src/index.ts";
import { describeReal, stateOf } from "../support/real-parts.ts";
import { play } from "../support/recording/played.ts";
import { RecordedGateway } from "../support/recording/recorded-gateway.ts";
import { Sluice } from "../support/sluice.ts";

/** Version 3 begins raw output with the size of the terminal. */
const SIZE = new RegExp(`^${String.fromCharCode(27)}\\[8;\\d+;\\d+t`);

describeReal("asciinema", "asciinema's own player", () => {
  const readsVersion3 = Number(stateOf("asciinema").versions[0]?.split(".")[0]) >= 3;
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
  const asciinema = (...args: string[]): string =>
    execFileSync("asciinema", args, {
      encoding: "utf8",
      env: environment(),
      timeout: 60_000,
      stdio: ["ignore", "pipe", "pipe"],
    });

  /** Since version 3 `cat` joins recordings, of which it takes two at least. */
  const showing = (recording: string): string => {
    if (!readsVersion3) return asciinema("cat", recording);
    const raw = path.join(folder, "raw");
    asciinema("convert", "--overwrite", "-f", "raw", recording, raw);
    return readFileSync(raw, "utf8").replace(SIZE, "");
  };

  /** Version 3 plays on a terminal alone. */
  const playing = (recording: string): string =>
    readsVersion3
      ? execFileSync("script", ["-qec", `asciinema play --speed 20 '${recording}'`, "/dev/null"], {
          encoding: "utf8",
          env: environment(),
          timeout: 60_000,
        })
      : asciinema("play", "--speed", "20", recording);

  it("shows what an export in version 2 has, and plays it to its end", async () => {
    const exported = path.join(folder, "exported.cast");
    const { stdout } = await new Sluice({}).run(["recordings", "export", file, "--format", "asciicast-v2"]);
    writeFileSync(exported, stdout);
    expect(showing(exported)).toBe(shown);
    expect(playing(exported)).toContain("200");
  });

  it.runIf(readsVersion3)("shows and converts the recording itself", () => {
    expect(showing(file)).toBe(shown);
    const text = path.join(folder, "recording.txt");
    asciinema("convert", file, text);
    expect(readFileSync(text, "utf8")).toContain("gr\u00fcn");
    expect(playing(file)).toContain("200");
  });
});
