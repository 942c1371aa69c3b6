import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { afterAll, beforeAll } from "vitest";
import {
  answerApiRequest,
  type ReadOnlyApiOptions,
} from "../../../../src/api/read-only-server/answer-api-request.ts";
import type { ObjectSource } from "../../../../src/api/read-only-server/api-answer.ts";
import { KubectlRunner } from "../../../support/kubectl.ts";

export const testApiOptions: ReadOnlyApiOptions = {
  version: { gitVersion: "v1.36.0+sluice", runtime: "nodejs", platform: "linux/amd64" },
  now: () => new Date(),
};

/** The read-only API over plain HTTP, without anything of the gateway around it. */
export async function serveReadOnlyApi(source: ObjectSource) {
  const server = http.createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://api");
    const answer = answerApiRequest(
      {
        method: request.method ?? "GET",
        path: url.pathname,
        query: url.searchParams,
        accept: request.headers.accept ?? "",
      },
      source,
      testApiOptions,
    );
    response.writeHead(answer?.status ?? 501, answer?.headers);
    if (answer === undefined || answer.body instanceof Uint8Array) {
      response.end(answer?.body);
      return;
    }
    // Nothing may have happened yet, and the client waits for the head.
    response.flushHeaders();
    const events = Readable.from(answer.body, { objectMode: true, highWaterMark: 1 });
    response.once("close", () => events.destroy());
    events.pipe(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

/** A kubectl of the tests of one `describe`, at the read-only API over these objects. */
export function runnerAt(
  kubectl: ConstructorParameters<typeof KubectlRunner>[0],
  source: ObjectSource,
): () => KubectlRunner {
  let server: Awaited<ReturnType<typeof serveReadOnlyApi>>;
  let runner: KubectlRunner;
  beforeAll(async () => {
    server = await serveReadOnlyApi(source);
    runner = new KubectlRunner(kubectl, server);
  });
  afterAll(async () => {
    runner.remove();
    await server.close();
  });
  return () => runner;
}
