import type { Socket } from "node:net";
import { ByteCollector } from "../../protocols/bytes/index.ts";
import { containEvents } from "../observability/faults.ts";

/**
 * Reads a new connection until `judge` has an answer from what was read (all, and the newest part). `decide` gets it with the socket
 * paused and all bytes unread. Closes clients that end or are late.
 */
export function judgeByFirstBytes<Answer>(
  socket: Socket,
  timeoutMs: number,
  judge: (seen: Buffer, newest: Buffer) => Answer | undefined,
  decide: (answer: Answer) => void,
): void {
  containEvents(socket, "listener", () => socket.destroy());
  const collector = new ByteCollector();
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
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
    const answer = judge(seen, chunk);
    if (answer === undefined) return;
    done();
    socket.pause();
    socket.unshift(seen);
    decide(answer);
  };
  socket.on("data", onData).on("end", onEnd).on("close", onEnd);
  socket.on("error", () => socket.destroy());
}
