import { describe, expect, it } from "vitest";
import {
  CRI_WEBSOCKET_VERSIONS,
  isRemoteCommandVersion,
  REMOTE_COMMAND_VERSIONS,
  SPDY_VERSIONS,
  specOf,
} from "../../../../protocols/remotecommand/versions.ts";

describe("versions of the remote command", () => {
  it("over SPDY: those that Kubernetes' refusal lists, in its order", () => {
    expect(SPDY_VERSIONS).toEqual([
      "v4.channel.k8s.io",
      "v3.channel.k8s.io",
      "v2.channel.k8s.io",
      "channel.k8s.io",
    ]);
  });

  it("over WebSocket to a runtime: binary ones and base64", () => {
    expect(CRI_WEBSOCKET_VERSIONS).toEqual([
      "v4.channel.k8s.io",
      "channel.k8s.io",
      "v4.base64.channel.k8s.io",
      "base64.channel.k8s.io",
    ]);
  });

  it("have their features: v5 alone closes channels, v4 and v5 end with a Status, base64 says so", () => {
    const those = (feature: keyof ReturnType<typeof specOf>) =>
      REMOTE_COMMAND_VERSIONS.filter((version) => specOf(version)[feature]);
    expect(those("hasClose")).toEqual(["v5.channel.k8s.io"]);
    expect(those("hasStatusJson")).toEqual([
      "v5.channel.k8s.io",
      "v4.channel.k8s.io",
      "v4.base64.channel.k8s.io",
    ]);
    expect(those("isBase64")).toEqual(["v4.base64.channel.k8s.io", "base64.channel.k8s.io"]);
  });

  it("are known by their exact names, and by no property of an object", () => {
    for (const version of REMOTE_COMMAND_VERSIONS) expect(isRemoteCommandVersion(version)).toBe(true);
    for (const name of ["", "V5.channel.k8s.io", "v6.channel.k8s.io", "constructor", "toString"])
      expect(isRemoteCommandVersion(name)).toBe(false);
  });
});
