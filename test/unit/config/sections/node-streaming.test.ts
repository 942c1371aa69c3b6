import { describe, expect, it } from "vitest";
import { parseConfiguration } from "../../../../src/config/configuration.ts";

function read(kubelet: string) {
  const file = `apiVersion: sluice.dev/v1alpha1\nkind: GatewayConfiguration\nkubelet:\n${kubelet}\n`;
  return parseConfiguration(file, "f.yaml").kubelet;
}

describe("kubelet.streaming", () => {
  it("has defaults", () => {
    expect(read("  port: 10250").streaming).toEqual({
      mode: "auto",
      nodes: new Map(),
      retryFailedPathMs: 60_000,
      maxRetryFailedPathMs: 1_800_000,
    });
  });

  it("names modes by node", () => {
    const { streaming } = read(
      "  streaming: { mode: websocket, nodes: { a: spdy, b: auto }, retryFailedPath: 2h }",
    );
    expect(streaming).toEqual({
      mode: "websocket",
      nodes: new Map([
        ["a", "spdy"],
        ["b", "auto"],
      ]),
      retryFailedPathMs: 7_200_000,
      maxRetryFailedPathMs: 7_200_000,
    });
  });

  it.each([
    ["  streaming: { mode: spdi }", /kubelet\.streaming\.mode: "spdi" is not supported; did you mean "spdy"/],
    ["  streaming: { nodes: { a: http2 } }", /kubelet\.streaming\.nodes\.a: "http2" is not supported/],
    ["  streaming: { nodes: { a: 1 } }", /kubelet\.streaming\.nodes\.a: must be a string/],
    [
      "  streaming: { retryFailedPath: 2m, maxRetryFailedPath: 1m }",
      /kubelet\.streaming\.maxRetryFailedPath: must not be shorter than retryFailedPath/,
    ],
    ["  circuitBreaker: { failures: 0 }", /kubelet\.circuitBreaker\.failures: must be between 1 and 1000/],
    ["  circuitBreaker: { retries: 3 }", /kubelet\.circuitBreaker\.retries: unknown field/],
  ])("%s is refused", (text, message) => {
    expect(() => read(text)).toThrow(message);
  });
});
