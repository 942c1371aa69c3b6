// `node bench/slow-readers.mjs [--sessions 100 --peer-sessions 50 --at-once 2 --only PATTERN
// --write]`: counts the sessions of each path that lose output when their clients read slowly: 16
// MiB at 4 MiB/s, 64 MiB at 3 MiB/s, and after a stall of 5 s, with a PING every 500 ms. `--only`
// chooses servers: `cluster` (the kubelet directly, the kubelet behind Sluice, and Sluice as the
// kubelet; further words select among them) and versions of containerd. `--write` writes
// docs/evidence/no-truncation.md.
import { spawnSync } from "node:child_process";
import { loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { readFlags } from "./flags.mjs";

const { values } = readFlags({
  options: {
    sessions: { type: "string", default: "100" },
    "peer-sessions": { type: "string" },
    "at-once": { type: "string", default: "2" },
    only: { type: "string", default: "" },
    write: { type: "boolean", default: false },
  },
});
const env = {
  ...process.env,
  SLUICE_FULL: "1",
  SLUICE_SESSIONS: values.sessions,
  SLUICE_PEER_SESSIONS: values["peer-sessions"] ?? String(Math.ceil(Number(values.sessions) / 2)),
  SLUICE_SESSIONS_AT_ONCE: values["at-once"],
  ...(values.write && { SLUICE_WRITE_DOCS: "1" }),
};
const [place, ...words] = values.only.split(" ");
const inCluster = [
  "--config",
  "test/cluster/vitest.config.ts",
  "test/cluster/slow-reader.test.ts",
  ...(words.length > 0 ? ["-t", words.join(" ")] : []),
];
const onRuntimes = [
  "--project",
  "real",
  "test/real/slow-reader.test.ts",
  "-t",
  `containerd .?${values.only}`,
];
const runs = { "": [inCluster, onRuntimes], cluster: [inCluster] }[place] ?? [onRuntimes];
console.log(`load average ${loadavg()[0].toFixed(1)}: above the number of cores other programs take part`);
for (const run of runs) {
  const { status } = spawnSync("npx", ["vitest", "run", ...run], {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    env,
    stdio: "inherit",
  });
  if (status !== 0) process.exitCode = 1;
}
