import { createHash } from "node:crypto";
import { PassThrough, Readable, Writable } from "node:stream";
import type { Executor } from "../../packages/client/src/index.ts";

const PART_BYTES = 50_000;

/**
 * Sends the input through `cat` in parts. Resolves with its exit code, and whether the input came
 * back unchanged.
 */
export async function throughCat(
  executor: Executor,
  input: Buffer,
): Promise<{ isWhole: boolean; exitCode: number | undefined }> {
  const hash = createHash("sha256");
  const stdout = new Writable({
    write(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      done();
    },
  });
  const chunks = Array.from({ length: Math.ceil(input.byteLength / PART_BYTES) }, (_, index) =>
    input.subarray(index * PART_BYTES, (index + 1) * PART_BYTES),
  );
  const { exitCode } = await executor.stream({ stdin: Readable.from(chunks), stdout });
  const sent = createHash("sha256").update(input).digest("hex");
  return { isWhole: hash.digest("hex") === sent, exitCode };
}

/** Runs a `cat` that reads what the test writes to `stdin`. */
export function openCat(executor: Executor) {
  const stdin = new PassThrough();
  const output: Buffer[] = [];
  const stdout = new Writable({
    write(chunk: Buffer, _encoding, done) {
      output.push(Buffer.from(chunk));
      done();
    },
  });
  const ended = executor.stream({ stdin, stdout });
  ended.catch(() => {});
  return { stdin, ended, shown: () => Buffer.concat(output).toString() };
}
