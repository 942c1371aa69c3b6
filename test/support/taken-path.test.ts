import { describe, expect, it } from "vitest";
import { kubectlTable } from "./kubectl-table.ts";
import { parseMetrics, pathTakenBy } from "./taken-path.ts";

const quiet = `# HELP sluice_streaming_requests_total x
sluice_streaming_requests_total{subresource="exec",plan="translate",code="101"} 4
apiserver_websocket_streaming_requests_total{subresource="exec",proxy_type="translated_at_apiserver"} 4
apiserver_stream_translator_requests_total{code="200"} 4
`;

describe("the path that metrics show", () => {
  it("nothing happened: no way", async () => {
    expect(await between(quiet, quiet)).toEqual({ ways: [], refusals: [] });
  });

  it("translated, counted over by the translator", async () => {
    expect(await between(quiet, quiet.replaceAll(" 4", " 5"))).toEqual({
      ways: ["WebSocket translate"],
      refusals: [],
    });
  });

  it("SPDY raises no WebSocket counter", async () => {
    const after = `${quiet}sluice_streaming_requests_total{subresource="exec",plan="pass-through",code="101"} 2`;
    expect(await between(quiet, after)).toEqual({ ways: ["SPDY pass-through"], refusals: [] });
  });

  it("a fallback leaves its refusal", async () => {
    const after = `${quiet}sluice_streaming_requests_total{subresource="exec",plan="pass-through",code="101"} 1
sluice_streaming_requests_total{subresource="exec",plan="translate",code="403"} 1`;
    expect(await between(quiet, after)).toEqual({ ways: ["SPDY pass-through"], refusals: ["403 x1"] });
  });
});

describe("the table for the documentation", () => {
  it("shows failures and gaps, and has one row for kubectls and nodes with equal paths", () => {
    const common = { kubectl: "1.20.2", node: "node-ws", path: "SPDY pass-through" };
    const results = [
      { ...common, check: "exec", hasPassed: true },
      { ...common, check: "cp", hasPassed: false },
      { ...common, kubectl: "1.27.16", check: "exec", hasPassed: true },
      { ...common, kubectl: "1.28.15", check: "exec", hasPassed: true },
    ];
    expect(kubectlTable(results, ["exec", "cp", "attach"]).split("\n")).toEqual([
      "| kubectl | node | exec | cp | attach |",
      "|---|---|---|---|---|",
      "| 1.20.2 | node-ws | SPDY | **FAIL** SPDY | not run |",
      "| 1.27.16, 1.28.15 | node-ws | SPDY | not run | not run |",
    ]);
  });
});

function between(before: string, after: string) {
  let text = before;
  return pathTakenBy(
    async () => parseMetrics(text),
    async () => {
      text = after;
    },
  );
}
