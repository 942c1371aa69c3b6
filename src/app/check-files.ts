import { checkKubeconfig } from "@sluice/client/internal/kubernetes/kubeconfig";
import { parseTokenFile } from "../access/authn/static-tokens.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";
import { checkNamedFiles } from "../config/named-files.ts";
import { parseSessionKeys } from "../peers/component.ts";
import { parseSigningKey } from "../recording/signing-key.ts";

/**
 * Reads every file that a configuration names, as the start does, but opens no port. Throws
 * ConfigurationError with every problem.
 */
export async function checkFiles({
  cluster,
  namedFiles,
}: Pick<GatewayConfiguration, "cluster" | "namedFiles">): Promise<void> {
  await checkNamedFiles(namedFiles, {
    kubeconfig: (_text, file) => checkKubeconfig(file, cluster.live?.context),
    "static tokens": parseTokenFile,
    "session keys": parseSessionKeys,
    "signing key": parseSigningKey,
  });
}
