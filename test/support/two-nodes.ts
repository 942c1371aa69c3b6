import { INGRESS_CLASS, ingressObject } from "./front-door.ts";
import type { TestGatewayOptions } from "./test-gateway.ts";

const backend = { resource: { apiGroup: "sluice.dev", kind: "StreamingGateway", name: "own" } };
const paths = [{ path: "/clusters/own", pathType: "Prefix", backend }];

/**
 * The pod `web`, whose node speaks SPDY, and `web-ws`, whose node accepts WebSockets. The API leg
 * is also behind the gateway's own Ingress, under `/clusters/own`.
 */
export const TWO_NODES: TestGatewayOptions = {
  fakeNodes: [
    { name: "node-spdy", pod: "web" },
    { name: "node-ws", pod: "web-ws", declaresWebSockets: true },
  ],
  manifests: [INGRESS_CLASS, ingressObject("own", { rules: [{ http: { paths } }] })],
  listeners: {
    ingress: { address: "127.0.0.1", httpPort: 0, httpsPort: 0, streamingGateways: [{ name: "own" }] },
  },
};
