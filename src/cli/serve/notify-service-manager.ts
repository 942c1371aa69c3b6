import { spawn } from "node:child_process";

/**
 * Sends READY=1 and MAINPID= for systemd's Type=notify, if a service manager asks. Node has no Unix
 * datagram sockets, so systemd's own program sends it.
 */
export async function notifyReady(env: NodeJS.ProcessEnv = process.env): Promise<void> {
  if (env["NOTIFY_SOCKET"] === undefined) return;
  const sender = spawn("systemd-notify", ["--ready", `--pid=${process.pid}`], {
    env,
    stdio: ["ignore", "ignore", "inherit"],
  });
  await new Promise<void>((resolve) => {
    sender.once("exit", () => resolve());
    sender.once("error", ({ message }) => {
      process.stderr.write(`sluice serve: cannot notify systemd: ${message}\n`);
      resolve();
    });
  });
}
