import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { parsePodLogOptions } from "@sluice/client/internal/api/pod-log-options";
import { StatusError } from "@sluice/client/internal/api/status";
import type { KubeletRoute } from "./kubelet-request.ts";
import { type Refusal, textRefusal } from "./refusal.ts";
import type { RunningPod } from "./running-pod.ts";

/** Answers `/containerLogs` like a kubelet, or refuses in its words. */
export function decideLog(
  { namespace, pod, container = "", query }: KubeletRoute,
  node: { findPod(namespace: string, name: string): RunningPod | undefined },
): { readonly refusal: Refusal } | { readonly respond: (response: ServerResponse) => void } {
  try {
    const options = parsePodLogOptions(query, Date.now());
    const running = node.findPod(namespace, pod);
    if (running === undefined) return refused(404, `pod ${JSON.stringify(pod)} not found\n`);
    const main = running.findContainer(container);
    const names = [container, pod].map((name) => JSON.stringify(name));
    if (main === undefined) return refused(404, `container ${names[0]} not found in pod ${names[1]}\n`);
    if (options.previous) {
      return refused(400, `previous terminated container ${names[0]} in pod ${names[1]} not found`);
    }
    return {
      respond: (response) => {
        response.writeHead(200, { "Content-Type": "text/plain; charset=utf-8" });
        response.flushHeaders();
        const abort = new AbortController();
        response.once("close", () => abort.abort());
        // An error here means that the client left, so nothing remains to be done.
        pipeline(Readable.from(main.log.read(options, abort.signal)), response).catch(() => {});
      },
    };
  } catch (error) {
    if (error instanceof StatusError) return refused(error.code, error.message);
    throw error;
  }
}

function refused(status: number, text: string): { readonly refusal: Refusal } {
  return { refusal: textRefusal(status, text) };
}
