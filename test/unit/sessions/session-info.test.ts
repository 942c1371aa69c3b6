import { describe, expect, it } from "vitest";
import { streamingSessionOf } from "../../../src/session-api/streaming-session.ts";
import { listed, type SessionInfo } from "../../../src/sessions/session-info.ts";

// The bound under test.
const MAX_AGENT_CHARACTERS = 256;

const info: SessionInfo = {
  id: "0a1b2c3d-0000-8000-8000-000000000001",
  subresource: "exec",
  namespace: "default",
  pod: "web",
  node: "node",
  user: "ana",
  plan: { kind: "translate", reason: "node-speaks-spdy-only" } as SessionInfo["plan"],
  startedAt: new Date(0),
  details: {
    container: "debugger",
    isEphemeral: true,
    command: ["mysql", "-psecret"],
    tty: true,
    stdin: true,
    groups: ["sre"],
    client: { address: "192.0.2.7", agent: "kubectl/v1.37.2" },
    protocol: "v5.channel.k8s.io",
  },
};

describe("a session in lists", () => {
  it("says where it comes from, and that its container is ephemeral; its command line it does not say", () => {
    const row = { ...listed(info), downstreamBytes: 1, upstreamBytes: 2 };
    expect(row).toMatchObject({ ephemeral: true, protocol: "v5.channel.k8s.io" });
    expect(JSON.stringify(row)).not.toContain("secret");
    expect(streamingSessionOf(row, 1).spec).toMatchObject({
      container: "debugger",
      ephemeral: true,
      client: { address: "192.0.2.7", userAgent: "kubectl/v1.37.2" },
      protocol: "v5.channel.k8s.io",
    });
  });

  it("has a long User-Agent cut", () => {
    const { details, ...rest } = info;
    if (details === undefined) throw new Error("no details");
    const client = { ...details.client, agent: "x".repeat(MAX_AGENT_CHARACTERS + 1) };
    expect(listed({ ...rest, details: { ...details, client } }).client?.agent).toHaveLength(
      MAX_AGENT_CHARACTERS,
    );
  });

  it("in a regular container does not say that it is ephemeral", () => {
    const { details, ...rest } = info;
    if (details === undefined) throw new Error("no details");
    expect("ephemeral" in listed({ ...rest, details: { ...details, isEphemeral: false } })).toBe(false);
  });
});
