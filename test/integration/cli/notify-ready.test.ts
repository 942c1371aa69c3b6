import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { expect, it, onTestFinished } from "vitest";
import { notifyReady } from "../../../src/cli/serve/serve.ts";

const has = (program: string): boolean => spawnSync(program, ["--version"]).status === 0;

/** systemd's end of the socket. Node has none of this kind. */
const RECEIVER = `
import socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print("bound", flush=True)
while True:
    print(receiver.recv(4096).decode().replace("\\n", " "), flush=True)
`;

it.skipIf(!has("python3") || !has("systemd-notify"))(
  "notifies systemd that this process is ready",
  async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "sluice-notify-"));
    const socket = path.join(folder, "notify");
    const receiver: ChildProcess = spawn("python3", ["-c", RECEIVER, socket], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => {
      receiver.kill();
      rmSync(folder, { recursive: true, force: true });
    });
    const lines = createInterface({ input: receiver.stdout as NodeJS.ReadableStream });
    await once(lines, "line");
    const received = once(lines, "line");
    const notified = notifyReady({ ...process.env, NOTIFY_SOCKET: socket });
    expect(String(await received)).toContain("READY=1");
    expect(String(await received)).toContain(`MAINPID=${process.pid}`);
    await notified;
  },
);

it("starts nothing where no service manager asks", async () => {
  // systemd-notify would not be found there, and that would be on standard error.
  await expect(notifyReady({ PATH: "/nowhere" })).resolves.toBeUndefined();
});
