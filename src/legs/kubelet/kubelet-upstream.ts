import { readFile } from "node:fs/promises";
import type { KubeletUpstreamSettings } from "../../config/sections/kubelet-upstream.ts";
import type { HeaderLine } from "../../http/header-list.ts";
import { HttpUpstream } from "../../http/upstream/http-upstream.ts";
import { joinHostPort } from "../../net/go-dial-error.ts";
import type { UpstreamTlsFiles } from "../../net/upstream-tls-files.ts";

/** The kubelet behind a kubelet listener, and what Sluice is to it. */
export class KubeletUpstream {
  readonly #settings: KubeletUpstreamSettings;
  readonly http: HttpUpstream;

  private constructor(settings: KubeletUpstreamSettings, http: HttpUpstream) {
    this.#settings = settings;
    this.http = http;
  }

  /** Rejects as `UpstreamTlsFiles` does, for files that are wrong. */
  static async open(
    settings: KubeletUpstreamSettings,
    dialTimeoutMs: number,
    upstreams: UpstreamTlsFiles,
  ): Promise<KubeletUpstream> {
    const { url, serverName } = settings;
    const endpoint = { ...(await upstreams.endpoint("kubeletUpstream", url, settings)), serverName };
    return new KubeletUpstream(settings, new HttpUpstream({ endpoint, dialTimeoutMs }));
  }

  /** host:port for the header Host. */
  get authority(): string {
    const { host, port } = this.http.endpoint;
    return joinHostPort(host, port);
  }

  /** The line with Sluice's own token, where it has one. Rejects if the file cannot be read. */
  async credentials(): Promise<readonly HeaderLine[]> {
    const { tokenFile } = this.#settings;
    if (tokenFile === undefined) return [];
    return [["Authorization", `Bearer ${(await readFile(tokenFile, "utf8")).trim()}`]];
  }

  close(): void {
    this.http.close();
  }
}

/** What is served here or not at all. A session that a kubelet served would escape the listener's limits and its question for `create`. */
const NEVER_RELAYED = /^\/(?:exec|attach|portForward|run|containerLogs|cri)(?:\/|$)/;

export function isNeverRelayed(pathname: string): boolean {
  return NEVER_RELAYED.test(pathname);
}
