import { describe, expect, it } from "vitest";
import { HeaderEdit } from "../../../packages/client/src/http/header-edit.ts";
import {
  type HeaderList,
  headerTokens,
  isHeaderValue,
  trimWhitespace,
  withHeader,
  withoutHeaders,
} from "../../../packages/client/src/http/header-list.ts";
import {
  addForwardedFor,
  addForwardedOrigin,
  trailersToForward,
} from "../../../src/http/forwarded-headers.ts";
import { requestEdit, upgradeEdit } from "../../../src/http/hop-by-hop.ts";

const forwardedFor = (headers: HeaderList, options: Parameters<typeof addForwardedFor>[1]) => {
  const edit = new HeaderEdit(headers);
  addForwardedFor(edit, options);
  return edit.lines();
};
const forwardedOrigin = (headers: HeaderList, options: Parameters<typeof addForwardedOrigin>[1]) => {
  const edit = new HeaderEdit(headers);
  addForwardedOrigin(edit, options);
  return edit.lines();
};

describe("header lists", () => {
  const headers: HeaderList = [
    ["A", "1"],
    ["b", "2"],
    ["a", "3, 4"],
  ];

  it("replaces all lines of a name by one, where the first stood", () => {
    expect(withHeader(headers, "a", "x")).toEqual([
      ["a", "x"],
      ["b", "2"],
    ]);
    expect(withHeader(headers, "C", "x")).toEqual([...headers, ["C", "x"]]);
  });

  it("removes whatever the case, and reads lists over several lines", () => {
    expect(withoutHeaders(headers, ["a"])).toEqual([["b", "2"]]);
    expect(
      headerTokens(
        [
          ["X", "A , ,b"],
          ["x", "\tC"],
        ],
        "x",
      ),
    ).toEqual(["a", "b", "c"]);
  });

  it("trims spaces and tabs only", () => {
    expect(trimWhitespace(" \ta\xa0 ")).toBe("a\xa0");
  });

  it.each(["a\r\nb", "a\nb", "a\0", "\x7f", "\u0100"])("refuses the value %j", (value) => {
    expect(isHeaderValue(value)).toBe(false);
  });
});

describe("hop-by-hop lines", () => {
  it("go, with all that Connection names in whatever spelling", () => {
    expect(
      requestEdit([
        ["connection", " X-User ,x-FOO"],
        ["Connection", "close\t,Host"],
        ["X-User", "root"],
        ["X-Foo", "1"],
        ["Host", "h"],
        ["Proxy-Connection", "x"],
        ["Transfer-Encoding", "chunked"],
        ["Upgrade", "h2c"],
        ["X-Keep", "1"],
      ]).lines(),
    ).toEqual([
      ["Host", "h"],
      ["X-Keep", "1"],
    ]);
  });

  it("keep the message's end: Content-Length can not be named away", () => {
    expect(
      requestEdit([
        ["Connection", "content-length"],
        ["Content-Length", "3"],
      ]).lines(),
    ).toEqual([["Content-Length", "3"]]);
  });

  it("go, and framing, in CGI's spelling too: it reads `Content_Length` as `Content-Length`", () => {
    expect(
      requestEdit([
        ["Transfer_Encoding", "chunked"],
        ["CONTENT_LENGTH", "5"],
        ["keep_alive", "timeout=5"],
        ["Proxy_Authorization", "x"],
        ["Content_Lengths", "kept"],
        ["My_Own", "kept"],
        ["Content-Length", "3"],
      ]).lines(),
    ).toEqual([
      ["Content_Lengths", "kept"],
      ["My_Own", "kept"],
      ["Content-Length", "3"],
    ]);
  });

  it("are rebuilt for an upgrade", () => {
    expect(
      upgradeEdit(
        [
          ["Connection", "keep-alive, Upgrade, X-A"],
          ["X-A", "1"],
          ["TE", "trailers"],
          ["UPGRADE", "websocket"],
        ],
        "websocket",
      ).lines(),
    ).toEqual([
      ["Connection", "Upgrade"],
      ["Upgrade", "websocket"],
    ]);
  });

  it("and framing, credentials or claims about earlier hops never pass as trailers", () => {
    expect(
      trailersToForward([
        ["Content-Length", "1"],
        ["authorization", "x"],
        ["X-Forwarded-For", "192.0.2.1"],
        ["x_forwarded_host", "other"],
        ["x-real-ip", "192.0.2.1"],
        ["Forwarded", "for=192.0.2.1"],
        ["transfer-encoding", "chunked"],
        ["Transfer_encoding", "chunked"],
        ["content_length", "1"],
        ["Content_Type", "text/html"],
        ["grpc-status", "0"],
      ]),
    ).toEqual([["grpc-status", "0"]]);
  });
});

describe("forwarded headers", () => {
  const sent: HeaderList = [
    ["x-forwarded-for", "1.1.1.1"],
    ["X-Forwarded-For", "2.2.2.2"],
    ["Forwarded", "for=3.3.3.3"],
    ["X-Forwarded-Proto", "gopher"],
  ];

  it("appends the peer to what a trusted peer says", () => {
    expect(forwardedFor(sent.slice(0, 2), { peerAddress: "::ffff:9.9.9.9", isPeerTrusted: true })).toEqual([
      ["X-Forwarded-For", "1.1.1.1, 2.2.2.2, 9.9.9.9"],
    ]);
    expect(
      forwardedOrigin(sent, {
        peerAddress: "9.9.9.9",
        isPeerTrusted: true,
        protocol: "https",
        host: "h",
      }),
    ).toEqual([
      ["X-Forwarded-For", "1.1.1.1, 2.2.2.2, 9.9.9.9"],
      ["Forwarded", "for=3.3.3.3"],
      ["X-Forwarded-Proto", "gopher"],
      ["X-Forwarded-Host", "h"],
    ]);
  });

  it.each([
    "X-Forwarded-For",
    "x_forwarded_for",
    "X-Forwarded-Prefix",
    "X-Forwarded-Ssl",
    "X-Forwarded-Scheme",
    "X-FORWARDED-server",
    "Forwarded",
    "X-Real-IP",
    "x_real_ip",
    "True-Client-IP",
    "True_Client-IP",
    "X-Original-URL",
    "x_original_url",
    "X-Rewrite-URL",
    "CF-Connecting-IP",
    "X_Cluster-Client_IP",
  ])("drops a stranger's %s, and keeps a proxy's, spelt with dashes", (name) => {
    const options = { peerAddress: "10.0.0.1", protocol: "https", host: "h" } as const;
    const claims: [string, string][] = [
      [name, "6.6.6.6"],
      ["X-Kept", "1"],
    ];
    const of = (isPeerTrusted: boolean) => forwardedOrigin(claims, { ...options, isPeerTrusted });
    expect(of(false)).toContainEqual(["X-Kept", "1"]);
    expect(JSON.stringify(of(false))).not.toContain("6.6.6.6");
    // A proxy may let a stranger's `X_Real_IP` through beside the `X-Real-IP` that it replaces.
    expect(JSON.stringify(of(true)).includes("6.6.6.6")).toBe(!name.includes("_"));
    expect(JSON.stringify(forwardedFor(claims, { ...options, isPeerTrusted: false }))).not.toContain(
      "6.6.6.6",
    );
  });

  it("overwrites all that a stranger claims", () => {
    expect(
      forwardedOrigin(sent, {
        peerAddress: "2001:db8::1",
        isPeerTrusted: false,
        protocol: "https",
        host: "h",
      }),
    ).toEqual([
      ["X-Forwarded-For", "2001:db8::1"],
      ["X-Forwarded-Proto", "https"],
      ["X-Forwarded-Host", "h"],
    ]);
  });
});
