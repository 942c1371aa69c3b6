import { createHash } from "node:crypto";
import { type ConformanceCase, onEach } from "../conformance-case.ts";
import { expectStatus, expectText, Violation } from "../judge.ts";
import { MAX_KEPT_BYTES } from "../recorded-output.ts";
import type { CommandTransport } from "../transports.ts";

const LINES = 20_000;
const NEEDS = ["sh", "tar", "mktemp", "seq", "cat", "sha256sum", "rm"] as const;
/** kubectl cp must close stdin, so only these transports qualify. */
const TRANSPORTS: readonly CommandTransport[] = ["websocket-v5", "spdy"];
const IN_TEMPORARY_FOLDER = 'd=$(mktemp -d) && trap \'rm -rf "$d"\' EXIT && cd "$d"';

export const copyCases: readonly ConformanceCase[] = onEach(TRANSPORTS, "cp", {
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
