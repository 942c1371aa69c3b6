import type { AddressInfo } from "node:net";
import { HttpUpstream } from "../../packages/client/src/http/upstream/http-upstream.ts";
import { createApiServer } from "../../src/legs/api-server/api-server.ts";
import { forwardToApiServer } from "../../src/legs/api-server/forward-to-api-server.ts";
import { selfSignedPair } from "./gateway-files.ts";
import { startGatewayHarness } from "./gateway-harness.ts";
import { closeServer } from "./http/loopback.ts";
import { type ScriptedBackend, startScriptedBackend } from "./scripted-backend.ts";

export interface ScriptedApiLeg {
  /** The API server behind the gateway, which is also the pod's node. */
  readonly peer: ScriptedBackend;
  /** The addresses of a listener in plain HTTP, and of one with TLS and HTTP/2. */
  readonly authorities: Readonly<Record<"h1" | "h2", string>>;
  close(): Promise<void>;
}

/** Two API listeners, each in front of one scripted server. */
export async function startScriptedApiLeg(): Promise<ScriptedApiLeg> {
  const peer = await startScriptedBackend("http/1.1");
  const harness = await startGatewayHarness({ kubeletPort: peer.port });
  const upstream = new HttpUpstream({ endpoint: { host: "127.0.0.1", port: peer.port } });
  const api = forwardToApiServer(harness.context, { upstream, impersonates: false });
  const tls = { ...(await selfSignedPair("gateway")), clientAuthorities: [] };
  const plain = createApiServer(harness.context, api, {});
  const secure = createApiServer(harness.context, api, { tls, http2: true });
  const listen = async ({ server }: typeof plain): Promise<string> => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  return {
    peer,
    authorities: { h1: await listen(plain), h2: await listen(secure) },
    close: async () => {
      upstream.close();
      await peer.stop();
      for (const { server } of [plain, secure]) {
        server.closeAllConnections();
        await closeServer(server, []);
      }
      await harness.close();
    },
  };
}
