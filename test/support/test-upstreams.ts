import { onTestFinished } from "vitest";
import { UpstreamTlsFiles } from "../../src/net/upstream-tls-files.ts";

type UpstreamTlsFilesOptions = ConstructorParameters<typeof UpstreamTlsFiles>[0];

/** TLS files for upstreams, watched until the test ends. Create this within a test. */
export function testUpstreams(options: Partial<UpstreamTlsFilesOptions> = {}): UpstreamTlsFiles {
  const upstreams = new UpstreamTlsFiles({ logger: { info: () => {}, error: () => {} }, ...options });
  onTestFinished(() => upstreams.stop());
  return upstreams;
}
