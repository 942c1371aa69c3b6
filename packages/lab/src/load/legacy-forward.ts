import { once } from "node:events";
import type { Readable } from "node:stream";
import { defaultSessionTimes, dial, type ExecutorOptions, type Target } from "@sluice/client";
import { ClientWebSocket } from "@sluice/client/internal/client-websocket";
import { dataChannelOf, errorChannelOf, PORT_PREFIX_BYTES } from "@sluice/protocols/portforward";
import { ChannelDemux } from "@sluice/protocols/remotecommand";
import type { Carrier } from "./load-session.ts";
import { LoadError } from "./recorder.ts";

const DATA = dataChannelOf(0);
const ERROR = errorChannelOf(0);
const PROTOCOL = "v4.channel.k8s.io";
const MAX_ERROR_BYTES = 1_024;

/**
 * Port-forward without SPDY: two channels per port; the server's first message names the port.
 * Input cannot be closed, so the server or the signal ends the session.
 */
export function legacyForward(target: Target, path: string, options: ExecutorOptions): Carrier {
  return async (input, output, signal) => {
    const request = { path, transport: "websocket", protocols: [PROTOCOL], signal, ...options } as const;
    const connection = await dial(target, request);
    await new Promise<void>((resolve, reject) => {
      const prefixLeft = [PORT_PREFIX_BYTES, PORT_PREFIX_BYTES];
      let said = "";
      const demux = new ChannelDemux(
        { isBase64: false, hasClose: false },
        {
          onChannelData: (channel, part) => {
            const skipped = Math.min(prefixLeft[channel] ?? 0, part.byteLength);
            prefixLeft[channel] = (prefixLeft[channel] ?? 0) - skipped;
            const rest = part.subarray(skipped);
            if (rest.byteLength === 0) return;
            if (channel === DATA) {
              if (output.write(rest)) return;
              webSocket.pause();
              void once(output, "drain").then(() => webSocket.resume());
            } else if (channel === ERROR && said.length < MAX_ERROR_BYTES)
              said += Buffer.from(rest).toString();
          },
          onChannelClose: () => {},
        },
      );
      const webSocket = new ClientWebSocket(
        connection,
        {
          onMessage: (part, isFirst, isLast) => demux.push(part, isFirst, isLast),
          onDrain: () => input?.resume(),
          onEnd: ({ isClean, code, reason }) => {
            stop();
            if (said !== "") reject(new LoadError("session", "remote-failure", said));
            else if (isClean) resolve();
            else reject(new LoadError("session", "connection-lost", `websocket: close ${code}: ${reason}`));
          },
        },
        { ...defaultSessionTimes, ...options.times },
      );
      const onAbort = (): void => {
        stop();
        webSocket.close();
        reject(new LoadError("session", "aborted", "aborted"));
      };
      const stop = sendFrom(input, webSocket, () => signal.removeEventListener("abort", onAbort));
      signal.addEventListener("abort", onAbort, { once: true });
      webSocket.start();
      if (signal.aborted) onAbort();
    });
  };
}

function sendFrom(input: Readable | undefined, webSocket: ClientWebSocket, onStop: () => void): () => void {
  const send = (part: Uint8Array): void => {
    webSocket.sendMessages(DATA, part);
    if (webSocket.needsDrain) input?.pause();
  };
  input?.on("data", send);
  return () => {
    input?.off("data", send);
    onStop();
  };
}
