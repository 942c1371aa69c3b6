import type { Socket } from "node:net";
import { ByteCollector } from "../../protocols/bytes/index.ts";
import { containEvents } from "../observability/faults.ts";

/**
 * Reads a new connection until `judge`, which gets all that was read and the newest part of it, knows what it is, and gives the answer to `decide` with all that was read still to be read and the
 * socket paused. A client that ends, fails or takes too long before that is let go.
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
