import { describe, expect, it } from "vitest";
import {
  CRI_WEBSOCKET_VERSIONS,
  type RemoteCommandVersion,
  type RequestedStreams,
  SPDY_VERSIONS,
  spdyStreamTypes,
} from "../../../../protocols/remotecommand/index.ts";

const all = { stdin: true, stdout: true, stderr: true, tty: false };
const rows: [RequestedStreams, RemoteCommandVersion, string][] = [
  [all, "v4.channel.k8s.io", "error stdin stdout stderr"],
  [{ ...all, tty: true }, "v4.channel.k8s.io", "error stdin stdout resize"],
  [{ ...all, tty: true }, "v3.channel.k8s.io", "error stdin stdout resize"],
  [{ ...all, tty: true }, "v2.channel.k8s.io", "error stdin stdout"],
  [{ ...all, stdin: false }, "channel.k8s.io", "error stdout stderr"],
];

describe("spdyStreamTypes", () => {
  for (const [requested, version, types] of rows) {
    it(`is ${types} for ${version}`, () => {
      expect(spdyStreamTypes(requested, version).join(" ")).toBe(types);
    });
  }
});

describe("versions", () => {
  it("lists what a SPDY server accepts, in the order of its refusals", () => {
    expect(SPDY_VERSIONS).toEqual([
      "v4.channel.k8s.io",
      "v3.channel.k8s.io",
      "v2.channel.k8s.io",
      "channel.k8s.io",
    ]);
  });

  it("lists what a CRI WebSocket server accepts", () => {
    expect([...CRI_WEBSOCKET_VERSIONS].sort()).toEqual([
      "base64.channel.k8s.io",
      "channel.k8s.io",
      "v4.base64.channel.k8s.io",
      "v4.channel.k8s.io",
    ]);
  });
});
