import { readFileSync } from "node:fs";
import { startGateway } from "../../src/app/app.ts";
import { parseConfiguration } from "../../src/config/configuration.ts";
import { GatewayFiles, type GatewayFilesOptions } from "./gateway-files.ts";
import { type MetricSamples, readMetricsOf } from "./taken-path.ts";

export interface TestGateway {
  apiServerUrl: string;
  adminUrl: string;
  /** Of the front door over TLS; undefined where none is configured. */
  ingressUrl: string | undefined;
  token: string;
  kubeconfig: string;
  /** A kubeconfig for another token of the token file. */
  kubeconfigFor(token: string): string;
  readMetrics(): Promise<MetricSamples>;
  stop(): Promise<void>;
}

/** The gateway in this process, configured by files as `sluice serve` is, with TLS on both sides. */
export async function startTestGateway(options: GatewayFilesOptions): Promise<TestGateway> {
  const files = new GatewayFiles();
  try {
    await files.write(options);
    const { configurationFile } = files;
    const gateway = await startGateway(
      parseConfiguration(readFileSync(configurationFile, "utf8"), configurationFile),
    );
    return {
      apiServerUrl: gateway.apiServerUrl,
      adminUrl: gateway.adminUrl,
      ingressUrl: gateway.ingress?.httpsUrl,
      token: files.token,
      kubeconfig: files.writeKubeconfig(gateway.apiServerUrl),
      kubeconfigFor: (token) => files.writeKubeconfig(gateway.apiServerUrl, token),
      readMetrics: () => readMetricsOf(gateway.adminUrl),
      stop: async () => {
        await gateway.shutDown();
        files.remove();
      },
    };
  } catch (error) {
    files.remove();
    throw error;
  }
}
