import { readFile } from "node:fs/promises";
import type { KubeletUpstreamSettings } from "../../config/kubelet-upstream.ts";
import type { HeaderLine } from "../../http/header-list.ts";
import { HttpUpstream } from "../../http/http-upstream.ts";
import { endpointOfUrl } from "../../net/endpoint-of-url.ts";
import { joinHostPort } from "../../net/go-dial-error.ts";

/** The kubelet behind a kubelet listener, and what Sluice is to it. */
export class KubeletUpstream {
  readonly #settings: KubeletUpstreamSettings;
  readonly #dialTimeoutMs: number;
  #http: HttpUpstream;

  private constructor(settings: KubeletUpstreamSettings, dialTimeoutMs: number, http: HttpUpstream) {
    this.#settings = settings;
    this.#dialTimeoutMs = dialTimeoutMs;
    this.#http = http;
  }

  /** Rejects as `endpointOfUrl` does, for files that are wrong. */
  static async open(settings: KubeletUpstreamSettings, dialTimeoutMs: number): Promise<KubeletUpstream> {
    return new KubeletUpstream(settings, dialTimeoutMs, await upstreamOf(settings, dialTimeoutMs));
  }

  /** Of the moment: a reload replaces it. */
  get http(): HttpUpstream {
    return this.#http;
  }

  /** host:port for the header Host. */
  get authority(): string {
    const { host, port } = this.#http.endpoint;
    return joinHostPort(host, port);
  }

  /** The line with Sluice's own token, where it has one. Rejects if the file cannot be read. */
  async credentials(): Promise<readonly HeaderLine[]> {
    const { tokenFile } = this.#settings;
    if (tokenFile === undefined) return [];
    return [["Authorization", `Bearer ${(await readFile(tokenFile, "utf8")).trim()}`]];
  }

  /** Reads certificates and keys again. Running exchanges keep the old ones. */
  async reload(): Promise<void> {
    const previous = this.#http;
    this.#http = await upstreamOf(this.#settings, this.#dialTimeoutMs);
    previous.close();
  }

  close(): void {
    this.#http.close();
  }
}

/** What is served here or not at all. A session that a kubelet served would escape the listener's limits and its question for `create`. */
const NEVER_RELAYED = /^\/(?:exec|attach|portForward|run|containerLogs|cri)(?:\/|$)/;

export function isNeverRelayed(pathname: string): boolean {
  return NEVER_RELAYED.test(pathname);
}

async function upstreamOf(settings: KubeletUpstreamSettings, dialTimeoutMs: number): Promise<HttpUpstream> {
  const { url, serverName } = settings;
  const endpoint = { ...(await endpointOfUrl(url, settings)), serverName };
  return new HttpUpstream({ endpoint, dialTimeoutMs });
}
