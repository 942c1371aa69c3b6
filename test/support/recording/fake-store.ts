import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, Server as TlsServer } from "node:https";
import type { AddressInfo } from "node:net";

interface ServerIdentity {
  readonly cert: string;
  readonly key: string;
}

/** An S3 store in memory: PUT, HEAD, parts of objects, and lists in pages. */
export class FakeStore {
  readonly objects = new Map<string, { content: Buffer; sha256: string }>();
  readonly requests: string[] = [];
  /** Objects of one page of a list. */
  pageSize = 1_000;
  /** Answers a request itself by returning true. */
  fault: (request: IncomingMessage, response: ServerResponse) => boolean = () => false;
  readonly #server: Server | TlsServer;

  private constructor(tls: ServerIdentity | undefined) {
    const answer = (request: IncomingMessage, response: ServerResponse) =>
      void this.#answer(request, response);
    this.#server = tls === undefined ? createServer(answer) : createTlsServer(tls, answer);
  }

  /** Serves HTTPS if it has a certificate. */
  static async start(tls?: ServerIdentity): Promise<FakeStore> {
    const store = new FakeStore(tls);
    store.#server.listen(0, "127.0.0.1");
    await once(store.#server, "listening");
    return store;
  }

  get section(): { endpoint: string; bucket: string } {
    const { port } = this.#server.address() as AddressInfo;
    const scheme = this.#server instanceof TlsServer ? "https" : "http";
    return { endpoint: `${scheme}://127.0.0.1:${port}`, bucket: "bucket" };
  }

  /** Has this certificate from now on, and ends all connections. */
  replaceCertificate(tls: ServerIdentity): void {
    (this.#server as TlsServer).setSecureContext(tls);
    this.#server.closeAllConnections();
  }

  put(key: string, content: Buffer | string): void {
    this.objects.set(key, { content: Buffer.from(content), sha256: "" });
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url = "", headers } = request;
    this.requests.push(`${method} ${url}${headers.range === undefined ? "" : ` ${headers.range}`}`);
    const body: Buffer[] = [];
    for await (const part of request) body.push(part as Buffer);
    if (this.fault(request, response)) return;
    const { pathname, searchParams } = new URL(url, "http://store");
    const key = decodeURIComponent(pathname.replace(/^\/bucket\//, ""));
    if (searchParams.has("list-type")) return void response.end(this.#page(searchParams));
    if (method === "PUT") {
      this.objects.set(key, {
        content: Buffer.concat(body),
        sha256: String(headers["x-amz-meta-sha256"] ?? ""),
      });
      return void response.writeHead(200, { etag: '"e"' }).end();
    }
    const object = this.objects.get(key);
    if (object === undefined)
      return void response.writeHead(404).end("<Error><Code>NoSuchKey</Code></Error>");
    const { content, sha256 } = object;
    if (method === "HEAD")
      return void response
        .writeHead(200, { "content-length": content.byteLength, "x-amz-meta-sha256": sha256 })
        .end();
    const [, first = "", last = ""] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "") ?? [];
    if (first === "") return void response.end(content);
    const part = content.subarray(Number(first), Number(last) + 1);
    if (part.byteLength === 0)
      return void response.writeHead(416).end("<Error><Code>InvalidRange</Code></Error>");
    const range = `bytes ${first}-${Number(first) + part.byteLength - 1}/${content.byteLength}`;
    response.writeHead(206, { "content-range": range }).end(part);
  }

  #page(query: URLSearchParams): string {
    const after = query.get("continuation-token") ?? query.get("start-after") ?? "";
    const prefix = query.get("prefix") ?? "";
    const keys = [...this.objects.keys()].filter((key) => key.startsWith(prefix));
    const named = new Set(keys.map((key) => entryOf(key, prefix, query.get("delimiter") ?? "")));
    const entries = [...named].filter((entry) => entry > after).sort();
    const page = entries.slice(0, this.pageSize);
    const contents = page.map((entry) => {
      const object = this.objects.get(entry);
      return object === undefined
        ? `<CommonPrefixes><Prefix>${entry}</Prefix></CommonPrefixes>`
        : `<Contents><Key>${entry}</Key><Size>${object.content.byteLength}</Size></Contents>`;
    });
    const isCut = entries.length > page.length;
    const next = isCut ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : "";
    return `<?xml version="1.0"?><ListBucketResult><Prefix>${prefix}</Prefix><IsTruncated>${isCut}</IsTruncated>${next}${contents.join("")}</ListBucketResult>`;
  }
}

/** The key, or its folder if it has the delimiter behind the prefix. */
function entryOf(key: string, prefix: string, delimiter: string): string {
  const end = delimiter === "" ? -1 : key.indexOf(delimiter, prefix.length);
  return end === -1 ? key : key.slice(0, end + 1);
}
