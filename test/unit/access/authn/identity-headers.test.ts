import { describe, expect, it } from "vitest";
import {
  frontProxyNames,
  withoutFrontProxy,
  withoutIdentity,
} from "../../../../src/access/authn/identity-headers.ts";

describe("headers that say who a user is", () => {
  it.each([
    "Authorization",
    "cookie",
    "X-Remote-User",
    "x_remote_user",
    "X_Remote-Group",
    "X-REMOTE_UID",
    "X-Remote-Extra-Scopes",
    "X_Remote_Extra_Scopes",
    "Impersonate-User",
    "impersonate_group",
    "Impersonate_Extra-a",
  ])("go to no node: %s", (name) => {
    expect(
      withoutIdentity([
        [name, "root"],
        ["X_Other", "1"],
      ]),
    ).toEqual([["X_Other", "1"]]);
  });

  it("leave the protocols of a WebSocket that are no token", () => {
    expect(
      withoutIdentity([
        ["Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.YQ, v5.channel.k8s.io"],
        ["sec-websocket-protocol", "base64url.bearer.authorization.k8s.io.YQ"],
      ]),
    ).toEqual([["Sec-WebSocket-Protocol", "v5.channel.k8s.io"]]);
  });

  it.each([
    ["X-Remote-User", true],
    ["X_Remote_User", true],
    ["x_remote-extra_a", true],
    ["X-Auth-Name", true],
    ["X_AUTH_NAME", true],
    ["x_auth_extra_b", true],
    ["X_Remote_Users", false],
    ["X-Other", false],
  ])("are a front proxy's, by the usual and the configured names: %s %s", (name, isTaken) => {
    const identityHeaders = { names: ["X-Auth-Name"], prefixes: ["X-Auth_Extra-"] };
    expect(frontProxyNames({ identityHeaders })(name)).toBe(isTaken);
    expect(withoutFrontProxy([[name, "a"]], { identityHeaders })).toHaveLength(isTaken ? 0 : 1);
  });
});
