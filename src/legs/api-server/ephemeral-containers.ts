import { isRecord } from "@sluice/client/internal/api/status-body";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";

/**
 * Bytes of a request that adds an ephemeral container, normally some KiB. Past it the audit event
 * names no container.
 */
const MAX_READ_PATCH_BYTES = 256 * 1024;

const PATH = /^\/api\/v1\/namespaces\/[^/]+\/pods\/[^/]+\/ephemeralcontainers$/;
const ANNOTATION = "sluice.dev/ephemeral-containers";

/** Annotates the audit event of a forwarded `kubectl debug` with the containers that it adds or keeps. */
export function noteEphemeralContainers(
  { method, url, trail }: Pick<IncomingStreaming, "method" | "url" | "trail">,
  { body }: Pick<HttpDownstream, "body">,
): void {
  if (trail === undefined || !["PATCH", "PUT"].includes(method) || !PATH.test(url.pathname)) return;
  const parts: Buffer[] = [];
  let bytes = 0;
  const onData = (part: Buffer): void => {
    bytes += part.byteLength;
    if (bytes <= MAX_READ_PATCH_BYTES) parts.push(Buffer.from(part));
    else parts.length = 0;
  };
  const onEnd = (): void => {
    const text = bytes > MAX_READ_PATCH_BYTES ? "" : Buffer.concat(parts).toString("utf8");
    trail.annotate(ANNOTATION, describeContainers(text) ?? "not read");
  };
  // A listener for data starts the body, so it is added together with the forwarder's.
  const onListener = (event: string | symbol): void => {
    if (event !== "data") return;
    body.off("newListener", onListener);
    body.on("data", onData).once("end", onEnd);
  };
  body.on("newListener", onListener);
}

/**
 * Name, image and target of each container, as JSON; undefined if the text is not JSON or names no
 * container.
 */
function describeContainers(text: string): string | undefined {
  let request: unknown;
  try {
    request = JSON.parse(text);
  } catch {
    return undefined;
  }
  const containers = containersIn(request).filter(isRecord);
  if (containers.length === 0) return undefined;
  return JSON.stringify(
    containers.map(({ name, image, targetContainerName: target }) => ({ name, image, target })),
  );
}

/** Reads a pod, a merge patch of one, or a JSON patch. */
function containersIn(request: unknown): readonly unknown[] {
  if (Array.isArray(request)) {
    return request.flatMap((operation) => {
      if (!isRecord(operation)) return [];
      const { path, value } = operation;
      return String(path).startsWith("/spec/ephemeralContainers") ? [value].flat() : [];
    });
  }
  const spec = isRecord(request) ? request.spec : undefined;
  const containers = isRecord(spec) ? spec.ephemeralContainers : undefined;
  return Array.isArray(containers) ? containers : [];
}
