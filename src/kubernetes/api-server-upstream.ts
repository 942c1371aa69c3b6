import type { HeaderList } from "../http/header-list.ts";
import type { HttpUpstream } from "../http/http-upstream.ts";

/** The real API server, and the gateway's identity there. */
export interface ApiServerUpstream {
  /** Of the moment: certificates may be replaced while we run. */
  readonly upstream: HttpUpstream;
  /** Where the API server is mounted below a path: `/k8s/clusters/c1`. */
  readonly pathPrefix?: string;
  /** Our own credentials besides a client certificate, for requests in another's name. */
  readonly ownCredentials?: { headers(): Promise<HeaderList>; forget(): void } | undefined;
  /**
   * The gateway has a client certificate there. Then it must impersonate the caller: otherwise every
   * caller would act with the gateway's own rights.
   */
  readonly impersonates: boolean;
}
