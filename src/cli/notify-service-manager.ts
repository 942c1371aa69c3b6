import { spawn } from "node:child_process";

/**
 * READY=1 for systemd's Type=notify; nothing where no service manager asks. Node has no Unix datagram sockets, so systemd's own program
 * sends it for this process.
 */
export function notifyReady(env: NodeJS.ProcessEnv = process.env): void {
  if (env["NOTIFY_SOCKET"] === undefined) return;
  const sender = spawn("systemd-notify", ["--ready", `--pid=${process.pid}`], {
    env,
    stdio: ["ignore", "ignore", "inherit"],
  });
  sender.on("error", ({ message }) =>
    process.stderr.write(`sluice serve: cannot notify systemd: ${message}\n`),
  );
}
