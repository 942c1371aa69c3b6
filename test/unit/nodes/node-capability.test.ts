import { describe, expect, it } from "vitest";
import { refusedPath } from "../../../src/nodes/node-capability.ts";

const RBAC = "Forbidden (user=gateway, verb=get, resource=nodes, subresource(s)=[proxy])\n";

describe("a refused WebSocket upgrade", () => {
  it.each([
    ["a runtime that knows no v5 (x/net)", 403, "", "forbidden"],
    ["a kubelet that grants create alone", 403, RBAC, "forbidden"],
    ["a hop without WebSocket", 400, "Bad Request", "bad-request"],
    ["a hop without WebSocket, in nginx's bare words", 400, "400 Bad Request\n", "bad-request"],
    ["a hop without WebSocket, in HTML", 404, "<html><title>404 Not Found</title>", "not-found"],
    ["gorilla", 400, "Bad Request\nwebsocket: the client is not using the websocket protocol", "bad-request"],
    ["a tunnel without names", 400, "unable to upgrade: no tunneling spdy protocols provided", "bad-request"],
    ["a kubelet that knows no tunnel", 400, 'query parameter "port" is required', "bad-request"],
    ["a route for POST alone", 405, "405: Method Not Allowed", "method-not-allowed"],
    ["an unknown route or token", 404, "404 page not found\n", "not-found"],
    ["a server that wants something else", 426, "", "upgrade-required"],
    ["a server that has it not", 501, "whatever", "not-implemented"],
    [
      "a runtime URL that the kubelet takes for https",
      500,
      "error dialing backend: http: server gave HTTP response to HTTPS client",
      "runtime-failed",
    ],
    ["a kubelet that wants SPDY", 500, "Upgrade request required", "runtime-failed"],
  ])("is the path's fault: %s", (_, status, text, cause) => {
    expect(refusedPath(status, text)).toBe(cause);
  });

  it.each([
    ["a wrong request", 400, "you must specify at least 1 of stdin, stdout, stderr"],
    ["nobody", 401, "Unauthorized"],
    ["an unknown pod", 404, "pod does not exist"],
    ["an unknown container", 404, 'container not found ("c")'],
    ["a kubelet without debugging", 405, "Debug endpoints are disabled."],
    ["a busy runtime", 429, "maximum number of in-flight requests exceeded"],
    ["a stopped container", 500, "container is in CONTAINER_EXITED state"],
    ["a command whose name is about upgrades", 500, 'error executing command in container: exec: "upgrade"'],
    ["a busy hop", 502, "websocket"],
    ["a hop without nodes", 503, "websocket"],
    ["a slow hop", 504, "websocket"],
  ])("is not: %s", (_, status, text) => {
    expect(refusedPath(status, text)).toBeUndefined();
  });
});
