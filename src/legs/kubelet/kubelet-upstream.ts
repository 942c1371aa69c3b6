import type { HeaderLine } from "@sluice/client/internal/http/header-list";
import { HttpUpstream } from "@sluice/client/internal/http/upstream/http-upstream";
import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import { readText } from "../../config/load-configuration.ts";
import type { UpstreamTlsFiles } from "../../net/upstream-tls-files.ts";

type KubeletListener = NonNullable<GatewayConfiguration["listeners"]["kubelet"]>;
type KubeletUpstreamSettings = NonNullable<KubeletListener["upstream"]>;

/** The real kubelet behind a kubelet listener, and Sluice's credentials for it. */
export class KubeletUpstream {
  readonly #settings: KubeletUpstreamSettings;
  readonly http: HttpUpstream;

  private constructor(settings: KubeletUpstreamSettings, http: HttpUpstream) {
    this.#settings = settings;
    this.http = http;
  }

  /** Rejects like `UpstreamTlsFiles` for invalid files. */
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

  /** The header line with Sluice's own token, if it has one. Rejects if the file cannot be read. */
  async credentials(): Promise<readonly HeaderLine[]> {
    const { tokenFile } = this.#settings;
    if (tokenFile === undefined) return [];
    return [["Authorization", `Bearer ${(await readText(tokenFile)).trim()}`]];
  }

  close(): void {
    this.http.close();
  }
}
