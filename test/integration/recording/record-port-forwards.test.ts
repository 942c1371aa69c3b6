import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import {
  portForwardPath,
  SpdyDialer,
  type Target,
  TunnelDialer,
} from "../../../packages/client/src/index.ts";
import { play } from "../../support/recording/played.ts";
import { RecordedGateway, type RecordedGatewayOptions } from "../../support/recording/recorded-gateway.ts";
import { websocketOnly } from "../../support/websocket-only.ts";

let gateway: RecordedGateway | undefined;
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
});

const PATH = portForwardPath({ namespace: "default", pod: "web" });
const tunnel = (target: Target) => new TunnelDialer(target, PATH);
const spdy = (target: Target) => new SpdyDialer(target, PATH);
const behindHop: RecordedGatewayOptions = { declaresWebSockets: true, streaming: websocketOnly };

describe.each([
  { way: "a tunnel that ends here", plan: "tunnel", dialer: tunnel, options: {} },
  {
    way: "a tunnel that passes through",
    plan: "pass-through",
    dialer: tunnel,
    options: { declaresWebSockets: true },
  },
  { way: "SPDY that passes through", plan: "pass-through", dialer: spdy, options: {} },
  { way: "SPDY that is bridged", plan: "bridge", dialer: spdy, options: behindHop },
])("$way", ({ plan, dialer, options }) => {
  it("records the port, the bytes of each side, and no payload", async () => {
    gateway = await RecordedGateway.start(options);
    const connection = await dialer(gateway.target).dial();
    for (const payload of ["secret-payload", "secret-again"]) {
      const stream = connection.openStream(7);
      stream.end(payload);
      const parts: Buffer[] = [];
      stream.on("data", (part: Buffer) => parts.push(part));
      await once(stream, "end");
      expect(Buffer.concat(parts).toString()).toBe(payload);
    }
    connection.close();
    await connection.ended;
    const text = await gateway.recording();
    const recorded = play(text);
    expect(recorded.of("p").map((data) => JSON.parse(data))).toEqual([
      { port: "7", seconds: expect.any(Number), bytesToNode: 14, bytesToClient: 14 },
      { port: "7", seconds: expect.any(Number), bytesToNode: 12, bytesToClient: 12 },
    ]);
    expect(text).not.toContain("secret");
    expect(recorded.header).toMatchObject({ sluice: { subresource: "portforward", plan } });
    expect(recorded.comments.at(-1)).toMatchObject({ head: { bytes: 52, gaps: 0, lines: 3 } });
  });
});
