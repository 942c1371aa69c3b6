import { type CopyProgress, noProgress } from "@sluice/client/internal/copy/copy-context";

/** A bar on stderr, if that is a terminal. `totalBytes` 0: unknown. */
export async function startProgress(name: string, totalBytes: number): Promise<CopyProgress> {
  if (!process.stderr.isTTY) return noProgress();
  const { default: cliProgress } = await import("cli-progress");
  const format = `${name.slice(-30)} {bar} {percentage}% {mebibytes} MiB {eta_formatted}`;
  const bar = new cliProgress.SingleBar({ format, hideCursor: true, stream: process.stderr });
  let bytes = 0;
  const mebibytes = (): { mebibytes: string } => ({ mebibytes: (bytes / 1024 / 1024).toFixed(1) });
  bar.start(Math.max(totalBytes, 1), 0, mebibytes());
  const show = (): void => bar.update(totalBytes === 0 ? 0 : bytes, mebibytes());
  return {
    advance: (more) => {
      bytes += more;
      show();
    },
    moveTo: (to) => {
      bytes = to;
      show();
    },
    stop: () => bar.stop(),
  };
}
