import type { Socket } from "node:net";
import { containEvents } from "@sluice/client/internal/observability/faults";
import { ByteCollector } from "@sluice/protocols/bytes";

interface FirstBytesJudge<Answer> {
  /** A connection that is undecided for this long is closed. */
  readonly timeoutMs: number;
  /** Decides from all bytes so far; `newest` is the latest part. Undefined: more bytes are needed. */
  judge(seen: Buffer, newest: Buffer): Answer | undefined;
  /** Receives the answer. The socket is paused, with all bytes unread except those that `consumes` counts. */
  decide(answer: Answer): void;
  /** How many bytes to remove before the next reader. Absent: none. */
  consumes?(answer: Answer): number;
  onLate?(): void;
}

/** Reads a new connection until `judge` answers. Closes connections that end first or are late. */
export function judgeByFirstBytes<Answer>(socket: Socket, judging: FirstBytesJudge<Answer>): void {
  containEvents(socket, "listener", () => socket.destroy());
  const collector = new ByteCollector();
  const timer = setTimeout(() => {
    judging.onLate?.();
    socket.destroy();
  }, judging.timeoutMs);
  const done = (): void => {
    clearTimeout(timer);
    socket.off("data", onData).off("end", onEnd).off("close", onEnd);
  };
  const onEnd = (): void => {
    done();
    socket.destroy();
  };
  const onData = (chunk: Buffer): void => {
    collector.append(chunk);
    const { buffer, byteOffset, byteLength } = collector.bytes;
    const seen = Buffer.from(buffer, byteOffset, byteLength);
    const answer = judging.judge(seen, chunk);
    if (answer === undefined) return;
    done();
    socket.pause();
    const unread = seen.subarray(judging.consumes?.(answer) ?? 0);
    if (unread.byteLength > 0) socket.unshift(unread);
    judging.decide(answer);
  };
  socket.on("data", onData).on("end", onEnd).on("close", onEnd);
  socket.on("error", () => socket.destroy());
  // An earlier judge leaves the socket paused.
  if (socket.isPaused()) socket.resume();
}
