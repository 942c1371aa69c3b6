import { describe, expect, it } from "vitest";
import {
  isShippedTunnelName,
  PORT_FORWARD_PROTOCOL,
  tunnelOffers,
  tunnelSubprotocolOf,
} from "../../../../protocols/portforward/index.ts";

describe("tunnelOffers", () => {
  it("finds the shipped name and the KEP's, and nothing else", () => {
    const offered = [
      "v4.channel.k8s.io",
      "v2.portforward.k8s.io",
      "SPDY/3.1+portforward.k8s.io",
      "SPDY/3.1+x",
      "spdy/3.1+portforward.k8s.io",
    ];
    expect(tunnelOffers(offered)).toEqual([
      { subprotocol: "v2.portforward.k8s.io", spdyProtocol: "portforward.k8s.io" },
      { subprotocol: "SPDY/3.1+portforward.k8s.io", spdyProtocol: "portforward.k8s.io" },
    ]);
  });

  it("are empty without one, and name any protocol of Kubernetes", () => {
    expect(tunnelOffers([])).toEqual([]);
    expect(tunnelOffers(["SPDY/3.1+x.k8s.io"])).toEqual([
      { subprotocol: "SPDY/3.1+x.k8s.io", spdyProtocol: "x.k8s.io" },
    ]);
  });
});

describe("a tunnel's subprotocol", () => {
  it("is the protocol behind SPDY/3.1, which its offer gives back", () => {
    const subprotocol = tunnelSubprotocolOf(PORT_FORWARD_PROTOCOL);
    expect(subprotocol).toBe("SPDY/3.1+portforward.k8s.io");
    expect(tunnelOffers([subprotocol])).toEqual([{ subprotocol, spdyProtocol: PORT_FORWARD_PROTOCOL }]);
  });

  it.each([
    ["SPDY/3.1+portforward.k8s.io", true],
    ["v2.portforward.k8s.io", false],
    ["SPDY/3.1+portforward.k8s.io.", false],
    ["SPDY/3.0+portforward.k8s.io", false],
    [" SPDY/3.1+portforward.k8s.io", false],
  ])("%j is shipped: %s", (subprotocol, isShipped) => {
    expect(isShippedTunnelName(subprotocol)).toBe(isShipped);
  });
});
