import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { CaseLab } from "../case-lab.ts";
import { type ConformanceCase, onEach } from "../conformance-case.ts";
import { COMMAND_TRANSPORTS, type CommandTransport } from "../endpoint.ts";
import { expectStatus, expectText, Violation } from "../judge.ts";
import { MAX_KEPT_BYTES } from "../recorded-output.ts";

const SEQUENTIAL = 30;
const POLL_MS = 200;

async function outputOf(lab: CaseLab, transport: CommandTransport, script: string): Promise<string> {
  const session = await lab.shell(transport, script);
  expectStatus(await lab.within("the end of a session", session.ended), 0);
  return session.stdout.text;
}

const abruptEndCases: readonly ConformanceCase[] = [
  ...onEach(COMMAND_TRANSPORTS, "abrupt-end", {
    name: "client-gone",
    requirement: "When a client's connection breaks, the command's input ends, and other sessions go on.",
    why: "Commands of clients that have left run for ever; a shared hop ends the sessions of others.",
    source: "kubernetes #89031, kubectl #1076",
    severity: "should",
    needs: ["sh", "cat"],
    run: async (lab, transport) => {
      const other = await lab.shell(transport, 'read line; echo "got $line"', { stdin: true });
      const broken = await lab.shell(transport, "echo $$; exec cat >/dev/null", { stdin: true });
      await lab.within(
        "the command's process id",
        broken.stdout.until(({ text }) => text.includes("\n")),
      );
      const processId = Number.parseInt(broken.stdout.text, 10);
      if (!(processId > 1)) throw new Violation(`${JSON.stringify(broken.stdout.text)} is not a process id`);
      broken.abort();
      const deadlineMs = performance.now() + lab.settings.stepTimeoutMs;
      const isAlive = `kill -0 ${processId} 2>/dev/null && echo alive; exit 0`;
      while ((await outputOf(lab, transport, isAlive)) !== "") {
        if (performance.now() > deadlineMs)
          throw new Violation("the command still waits for input after its client has gone");
        await delay(POLL_MS);
      }
      await other.write("more\n");
      expectStatus(await lab.within("the end of the other session", other.ended), 0);
      expectText("the other session's output", other.stdout.text, "got more\n");
    },
  }),
  ...onEach(COMMAND_TRANSPORTS, "abrupt-end", {
    name: "killed-command",
    requirement: "A command that a signal ended is reported as a failure.",
    why: "Scripts take a command that was killed for a success.",
    source: "kubernetes e2e kubectl exec; shells report 128 plus the signal",
    severity: "must",
    needs: ["sh"],
    run: async (lab, transport) => {
      const session = await lab.shell(transport, "echo before; kill -9 $$");
      const { outcome, error } = await lab.within("the end of the session", session.ended);
      expectText("stdout", session.stdout.text, "before\n");
      if (outcome.type === "missing") throw new Violation(`no status arrived: ${error.message}`);
      if (outcome.type === "success") throw new Violation("success was reported");
    },
  }),
];

const manySessionCases: readonly ConformanceCase[] = [
  ...onEach(COMMAND_TRANSPORTS, "sessions", {
    name: "parallel",
    requirement: "Many sessions are open at once, and each has its own input and output.",
    why: "Teams and CI jobs share an endpoint.",
    source: "kubernetes #67913, #57992",
    severity: "must",
    needs: ["sh"],
    run: async (lab, transport) => {
      const { parallelSessions } = lab.settings;
      const opened = Array.from({ length: parallelSessions }, () =>
        lab.shell(transport, 'read line; echo "got $line"', { stdin: true }),
      );
      const sessions = await lab.within(`${parallelSessions} open sessions`, Promise.all(opened));
      for (const [index, session] of sessions.entries()) await session.write(`${index}\n`);
      for (const [index, session] of sessions.entries()) {
        expectStatus(await lab.within(`the end of session ${index + 1}`, session.ended), 0);
        expectText(`the output of session ${index + 1}`, session.stdout.text, `got ${index}\n`);
      }
    },
  }),
  ...onEach(COMMAND_TRANSPORTS, "sessions", {
    name: "sequence",
    requirement: `Each of ${SEQUENTIAL} short sessions, one after the other, has its whole output.`,
    why: "Scripts that call kubectl exec in a loop see an empty output now and then.",
    source: "kubernetes #131189, #123598",
    severity: "must",
    needs: ["sh"],
    run: async (lab, transport) => {
      for (let index = 0; index < SEQUENTIAL; index++) {
        expectText(
          `the output of session ${index + 1}`,
          await outputOf(lab, transport, `echo ${index}`),
          `${index}\n`,
        );
      }
    },
  }),
];

const LINES = 20_000;
const NEEDS = ["sh", "tar", "mktemp", "seq", "cat", "sha256sum", "rm"] as const;
/** kubectl cp must close stdin, so only these transports qualify. */
const TRANSPORTS: readonly CommandTransport[] = ["websocket-v5", "spdy"];
const IN_TEMPORARY_FOLDER = 'd=$(mktemp -d) && trap \'rm -rf "$d"\' EXIT && cd "$d"';

const copyCases: readonly ConformanceCase[] = onEach(TRANSPORTS, "cp", {
  name: "round-trip",
  requirement: "An archive of tar comes out of the container unchanged, and goes in again unchanged.",
  why: "kubectl cp ends with unexpected EOF, or writes broken files.",
  source: "kubernetes #60140; kubectl cp",
  severity: "must",
  needs: NEEDS,
  run: async (lab, transport) => {
    const out = await lab.shell(
      transport,
      `${IN_TEMPORARY_FOLDER} && seq 1 ${LINES} >file && tar cf archive file && sha256sum <archive >&2 && cat archive`,
      { stderr: true },
    );
    expectStatus(await lab.within("the end of the download", out.ended), 0);
    const digest = out.stderr.text.slice(0, 64);
    if (out.stdout.sha256 !== digest)
      throw new Violation(
        `${out.stdout.byteLength} bytes of the archive arrived, with another SHA-256 than it has`,
      );
    if (out.stdout.byteLength > MAX_KEPT_BYTES)
      throw new Violation(
        `the archive has ${out.stdout.byteLength} bytes; less than ${MAX_KEPT_BYTES} were expected`,
      );

    const back = await lab.shell(transport, `${IN_TEMPORARY_FOLDER} && tar xmf - && sha256sum <file`, {
      stdin: true,
    });
    await back.write(out.stdout.bytes);
    back.endInput();
    expectStatus(await lab.within("the end of the upload", back.ended), 0);
    const lines = Array.from({ length: LINES }, (_, index) => `${index + 1}\n`).join("");
    const expected = createHash("sha256").update(lines).digest("hex");
    expectText("the SHA-256 of the file that was unpacked", back.stdout.text.slice(0, 64), expected);
  },
});

export const sessionCases: readonly ConformanceCase[] = [
  ...copyCases,
  ...abruptEndCases,
  ...manySessionCases,
];
