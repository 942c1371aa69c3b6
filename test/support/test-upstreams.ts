import { onTestFinished } from "vitest";
import { UpstreamTlsFiles, type UpstreamTlsFilesOptions } from "../../src/net/upstream-tls-files.ts";

/** Files of TLS to upstreams, followed until the test ends; to be made within one. */
export function testUpstreams(options: Partial<UpstreamTlsFilesOptions> = {}): UpstreamTlsFiles {
  const upstreams = new UpstreamTlsFiles({ logger: { info: () => {}, error: () => {} }, ...options });
  onTestFinished(() => upstreams.stop());
  return upstreams;
}
