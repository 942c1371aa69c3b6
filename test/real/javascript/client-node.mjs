// A release of @kubernetes/client-node, by the path of its package, against a pod whose port 7 echoes: prints a JSON object with a member for each check.
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { PassThrough } from "node:stream";
import { buffer } from "node:stream/consumers";

const [, , package_, kubeconfig, pod] = process.argv;
const FORWARDS = 20;
const SIZE = 5 * 1024 * 1024;
const PIECE = 32 * 1024;
const { Exec, KubeConfig, PortForward } = createRequire(import.meta.url)(package_);
const config = new KubeConfig();
config.loadFromFile(kubeconfig);

async function run(script, input) {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const [out, err] = [buffer(stdout), buffer(stderr)];
  const status = await new Promise((resolve, reject) => {
    const command = ["sh", "-c", script];
    new Exec(config)
      .exec("default", pod, "main", command, stdout, stderr, input && stdin, false, resolve)
      .catch(reject);
    // Releases before 1.0 close the whole session at the end of their input.
    for (let at = 0; at < (input?.length ?? 0); at += PIECE) stdin.write(input.subarray(at, at + PIECE));
  });
  stdout.end();
  stderr.end();
  return { out: await out, err: await err, code: Number(status.details?.causes?.[0]?.message ?? 0) };
}

async function echoes(number) {
  const wanted = Buffer.from(`forward ${number}\n`.repeat(1000));
  const [output, input] = [new PassThrough(), new PassThrough()];
  const socket = await new PortForward(config).portForward("default", pod, [7], output, null, input);
  input.write(wanted);
  const parts = [];
  for await (const part of output) {
    parts.push(part);
    if (parts.reduce((sum, { length }) => sum + length, 0) >= wanted.length) break;
  }
  socket.close();
  return Buffer.concat(parts).equals(wanted);
}

const failed = await run("echo out; echo err >&2; exit 3");
const got = await run(`seq 1000000000 1999999999 | head -c ${SIZE}`);
const data = Buffer.from(Uint8Array.from({ length: SIZE }, (_, at) => at));
const digest = await run(`head -c ${SIZE} | sha256sum | cut -c1-64`, data);
let forwards = 0;
for (let number = 0; number < FORWARDS; number += 1) forwards += await echoes(number);
console.log(
  JSON.stringify({
    exit_code: [failed.out.toString(), failed.err.toString(), failed.code],
    download: [got.out.length, got.out.toString().slice(0, 11), got.code],
    upload: digest.out.toString().trim() === createHash("sha256").update(data).digest("hex"),
    forwards,
  }),
);
process.exit(0);
