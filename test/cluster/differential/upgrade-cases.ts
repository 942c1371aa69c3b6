import type { User } from "../doors.ts";
import type { HttpCase } from "./http-cases.ts";

const PODS = "/api/v1/namespaces/default/pods";
const WEB = `${PODS}/web`;

/** Upgrades that are refused before anything runs, or that lead to a 101. */
const upgrade = (user: User, path: string, headers: Record<string, string>): HttpCase => ({
  user,
  method: headers.Upgrade === "SPDY/3.1" ? "POST" : "GET",
  path,
  headers: { Connection: "Upgrade", ...headers },
  note: `${headers.Upgrade} ${headers["Sec-WebSocket-Protocol"] ?? headers["X-Stream-Protocol-Version"] ?? ""}`,
});
const webSocket = (protocol?: string): Record<string, string> => ({
  Upgrade: "websocket",
  "Sec-WebSocket-Version": "13",
  "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
  ...(protocol !== undefined && { "Sec-WebSocket-Protocol": protocol }),
});
const spdy = (...protocols: string[]): Record<string, string> => ({
  Upgrade: "SPDY/3.1",
  ...(protocols.length > 0 && { "X-Stream-Protocol-Version": protocols.join(", ") }),
});
const EXEC = `${WEB}/exec?container=main&command=true&stdout=true`;
// To a container that nothing is asked of: a client that leaves in the wrong moment stops containerd's copy of its output for ever.
const ATTACH = `${WEB}/attach?container=side&stdout=true`;
const FORWARD = `${WEB}/portforward`;

export const upgradeCases: readonly HttpCase[] = [
  upgrade("admin", EXEC, webSocket("v5.channel.k8s.io")),
  upgrade("admin", EXEC, webSocket("v4.channel.k8s.io")),
  upgrade("admin", EXEC, webSocket("channel.k8s.io")),
  upgrade("admin", EXEC, webSocket()),
  upgrade("admin", EXEC, webSocket("nosuch")),
  upgrade("admin", EXEC, webSocket("v5.channel.k8s.io, v4.channel.k8s.io")),
  upgrade("admin", EXEC, { ...webSocket("v5.channel.k8s.io"), "Sec-WebSocket-Version": "8" }),
  upgrade("admin", EXEC, { Upgrade: "websocket" }),
  upgrade("admin", EXEC, { Upgrade: "nosuch" }),
  upgrade("admin", EXEC, spdy("v4.channel.k8s.io")),
  upgrade("admin", EXEC, spdy()),
  upgrade("admin", EXEC, spdy("nosuch")),
  upgrade("admin", ATTACH, webSocket("v5.channel.k8s.io")),
  upgrade("admin", ATTACH, spdy("v4.channel.k8s.io")),
  upgrade("admin", FORWARD, webSocket("SPDY/3.1+portforward.k8s.io")),
  upgrade("admin", FORWARD, webSocket("v4.channel.k8s.io")),
  upgrade("admin", `${FORWARD}?ports=8080`, webSocket("v4.channel.k8s.io")),
  upgrade("admin", FORWARD, spdy("portforward.k8s.io")),
  upgrade("admin", FORWARD, spdy("nosuch")),
  ...(["viewer", "none", "nobody"] as const).flatMap((user) =>
    [EXEC, ATTACH, FORWARD].flatMap((path) => [
      upgrade(user, path, webSocket(path === FORWARD ? "SPDY/3.1+portforward.k8s.io" : "v5.channel.k8s.io")),
      upgrade(user, path, spdy(path === FORWARD ? "portforward.k8s.io" : "v4.channel.k8s.io")),
    ]),
  ),
  upgrade("admin", `${PODS}/nosuch/exec?command=id&stdout=1`, webSocket("v5.channel.k8s.io")),
  upgrade("admin", `${PODS}/finite/exec?command=id&stdout=1`, webSocket("v5.channel.k8s.io")),
  upgrade("admin", `${WEB}/exec?command=id&stdout=1&container=nosuch`, spdy("v4.channel.k8s.io")),
  upgrade("admin", `${PODS}?watch=1&timeoutSeconds=1&labelSelector=app%3Dweb`, webSocket()),
  upgrade("admin", WEB, webSocket()),
  upgrade("admin", "/version", webSocket()),
];
