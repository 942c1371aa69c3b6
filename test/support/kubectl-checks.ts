import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { get } from "node:http";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { expect } from "vitest";
import { eventually } from "./eventually.ts";
import { collect, type KubectlRunner } from "./kubectl.ts";

/** A program that accepts kubectl's commands and flags. */
export type CommandRunner = Pick<KubectlRunner, "version" | "folder" | "start" | "run" | "startInTerminal">;

/** The pod that kubectl is tested with. */
export interface CheckedPod {
  name: string;
  /**
   * A container whose main process repeats every line of its stdin, possibly with words of its own.
   */
  container: string;
  /** An existing folder inside the pod, to which `cp` may write. */
  folder: string;
  /** A port of the pod that serves HTTP. */
  httpPort: number;
}

/**
 * Checks that piped stdin reaches the command, that its two outputs stay separate, that a
 * half-close ends `cat`, and that its exit code comes back.
 */
export async function checkExec(runner: CommandRunner, pod: CheckedPod): Promise<void> {
  const input = randomBytes(96 * 1024).toString("base64");
  const script = "cat; echo to-stderr >&2; exit 7";
  const command = ["exec", "-i", pod.name, "-c", pod.container, "--", "sh", "-c", script];
  const result = await runner.run(command, { input });
  expect({ ...result, stdout: "" }).toMatchObject({
    exitCode: 7,
    stderr: expect.stringContaining("to-stderr"),
  });
  expect(
    result.stdout === input,
    `${result.stdout.length} of ${input.length} characters came back, or others`,
  ).toBe(true);
}

/**
 * Checks that a terminal has the size of kubectl's own and follows its changes, and that its
 * shell's exit code comes back.
 */
export async function checkTerminal(runner: CommandRunner, pod: CheckedPod): Promise<void> {
  const command = ["exec", "-it", pod.name, "-c", pod.container, "--", "sh"];
  const terminal = runner.startInTerminal(command, { columns: 91, rows: 33 });
  let screen = "";
  terminal.onData((text) => {
    screen += text;
  });
  let exitCode: number | undefined;
  terminal.onExit((event) => {
    exitCode = event.exitCode;
  });
  const showScreen = () => `the screen shows ${JSON.stringify(screen)}`;
  // The size has a stream of its own and may arrive after the prompt, so the question is repeated.
  const untilSizeIs = (size: string) =>
    eventually(
      () => `stty size says ${size}; ${showScreen()}`,
      () => {
        if (screen.includes(size)) return true;
        terminal.write("stty size\r");
        return false;
      },
      { timeoutMs: 20_000, intervalMs: 150 },
    );
  try {
    await untilSizeIs("33 91");
    terminal.resize(122, 44);
    await untilSizeIs("44 122");
    terminal.write("exit 3\r");
    expect(
      await eventually(
        () => `kubectl ends; ${showScreen()}`,
        () => exitCode,
        { timeoutMs: 20_000 },
      ),
    ).toBe(3);
  } finally {
    terminal.kill("SIGKILL");
  }
}

/**
 * Checks that input reaches the running process, and that its answer comes back. Without a terminal
 * only the process echoes the line.
 */
export async function checkAttach(runner: CommandRunner, pod: CheckedPod): Promise<void> {
  const child = runner.start(["attach", "-i", pod.name, "-c", pod.container]);
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  const closed = once(child, "close");
  const line = `hello ${randomBytes(8).toString("hex")}`;
  try {
    child.stdin.write(`${line}\n`);
    await eventually("the attached process answers", () => stdout().includes(line), {
      timeoutMs: 20_000,
    });
  } catch (error) {
    throw new Error(`no answer from the attached process; stdout: ${stdout()}; stderr: ${stderr()}`, {
      cause: error,
    });
  } finally {
    child.kill("SIGKILL");
    await closed;
  }
}

/** Checks that a file copied in and out again is unchanged. */
export async function checkCopy(runner: CommandRunner, pod: CheckedPod, sizeBytes: number): Promise<void> {
  const local = path.join(runner.folder, "sent");
  const returned = path.join(runner.folder, "returned");
  const remote = `${pod.folder}/copied-${runner.version}`;
  await pipeline(randomChunks(sizeBytes), createWriteStream(local));
  const timeoutMs = 180_000;
  const copyIn = ["cp", local, `default/${pod.name}:${remote}`, "-c", pod.container];
  expect(await runner.run(copyIn, { timeoutMs })).toMatchObject({ exitCode: 0 });
  const copyOut = ["cp", `default/${pod.name}:${remote}`, returned, "-c", pod.container];
  expect(await runner.run(copyOut, { timeoutMs })).toMatchObject({ exitCode: 0 });
  expect(await sha256Of(returned)).toBe(await sha256Of(local));
  const remove = ["exec", pod.name, "-c", pod.container, "--", "rm", remote];
  expect(await runner.run(remove)).toMatchObject({ exitCode: 0 });
}

/** Sends many requests, each over its own connection, through one port-forward. */
export async function checkPortForward(
  runner: CommandRunner,
  pod: CheckedPod,
  { requests = 200, concurrency = 20 } = {},
): Promise<void> {
  const command = ["port-forward", "--address", "127.0.0.1", `pod/${pod.name}`, `:${pod.httpPort}`];
  const child = runner.start(command);
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  const closed = once(child, "close");
  try {
    const localPort = await eventually("kubectl listens", () => /127\.0\.0\.1:(\d+) ->/.exec(stdout())?.[1], {
      timeoutMs: 20_000,
    });
    const answers: string[] = [];
    let started = 0;
    const worker = async () => {
      while (started++ < requests) answers.push(await fetchOnce(Number(localPort)));
    };
    await Promise.all(Array.from({ length: concurrency }, worker));
    expect(answers).toHaveLength(requests);
    expect([...new Set(answers)], "every answer is a 200 with the same page").toEqual([
      expect.stringMatching(/^200 ./),
    ]);
  } catch (error) {
    throw new Error(`port-forward failed; stdout: ${stdout()}; stderr: ${stderr()}`, { cause: error });
  } finally {
    child.kill("SIGKILL");
    await closed;
  }
}

function fetchOnce(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get({ host: "127.0.0.1", port, path: "/", agent: false, timeout: 20_000 }, (response) => {
      const body = collect(response);
      response.on("end", () => resolve(`${response.statusCode} ${body()}`));
      response.on("error", reject);
    });
    request.on("timeout", () => request.destroy(new Error("no answer within 20 s")));
    request.on("error", reject);
  });
}

function* randomChunks(sizeBytes: number): Generator<Buffer> {
  const chunkBytes = 1024 * 1024;
  for (let left = sizeBytes; left > 0; left -= chunkBytes) yield randomBytes(Math.min(left, chunkBytes));
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}
