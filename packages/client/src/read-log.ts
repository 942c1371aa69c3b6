import { Readable } from "node:stream";
import { type Cluster, type ContainerName, referenceIn } from "./cluster.ts";
import { asConnectError, getBody } from "./get-object.ts";
import { logPath } from "./pod-paths.ts";

/** The API's PodLogOptions. */
export interface LogOptions {
  /** Waits for new lines until the container ends. Default: false. */
  readonly follow?: boolean | undefined;
  /** The log of the container before its last restart. Default: false. */
  readonly previous?: boolean | undefined;
  /** Each line begins with its time. Default: false. */
  readonly timestamps?: boolean | undefined;
  /** Lines from the end. Default: all. */
  readonly tailLines?: number | undefined;
  /** Only lines of the last seconds. Default: all. */
  readonly sinceSeconds?: number | undefined;
  /** Only lines from this time on, in RFC 3339. Default: all. */
  readonly sinceTime?: string | undefined;
  /** Ends after this many bytes. Default: no limit. */
  readonly limitBytes?: number | undefined;
  /** Ends the log with ConnectError "aborted". */
  readonly signal?: AbortSignal | undefined;
}

/**
 * A container's log as a stream of bytes. The stream fails with ConnectError if the connection
 * breaks off, so its end is the log's. Throws ConnectError if the server refuses.
 */
export async function readLog(
  cluster: Cluster,
  container: ContainerName,
  { signal = new AbortController().signal, ...query }: LogOptions = {},
): Promise<Readable> {
  const body = await getBody(cluster.target, logPath(referenceIn(cluster, container), query), { signal });
  return Readable.from(chunksOf(body), { objectMode: false });
}

async function* chunksOf(body: Readable): AsyncGenerator<Buffer, void, void> {
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) yield chunk;
  } catch (error) {
    throw asConnectError(error, false);
  }
}
