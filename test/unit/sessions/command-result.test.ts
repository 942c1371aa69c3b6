import { describe, expect, it } from "vitest";
import {
  encodeStatus,
  exitCodeStatus,
  internalErrorStatus,
  successStatus,
} from "../../../protocols/remotecommand/index.ts";
import { CommandResult } from "../../../src/sessions/observers/command-result.ts";

// The bound under test.
const MAX_STATUS_BYTES = 64 * 1024;

const status = (message: string): Buffer =>
  Buffer.from(JSON.stringify({ metadata: {}, status: "Failure", message, code: 500 }));

describe("a node's status", () => {
  it("of the largest size is passed on as it is", () => {
    const largest = status("x".repeat(MAX_STATUS_BYTES - status("").byteLength));
    const result = new CommandResult("v5.channel.k8s.io");
    for (let at = 0; at < largest.byteLength; at += 1_000) result.receive(largest.subarray(at, at + 1_000));
    expect(Buffer.from(result.conclude().status).equals(largest)).toBe(true);
  });

  it("that is larger is not kept, and fails the session in so many words", () => {
    const result = new CommandResult("v5.channel.k8s.io");
    for (let part = 0; part <= MAX_STATUS_BYTES / 1_024; part += 1) result.receive(Buffer.alloc(1_024, "x"));
    const { status: said, end } = result.conclude();
    expect(end).toMatchObject({ endedBy: "node", cause: "upstream-failed", code: 500 });
    expect(Buffer.from(said).toString()).toContain("the node sent a status that is too large");
  });

  // k8s.io/apiserver v0.37.2 streamtranslator.go and client-go v4.go, which the kubelet's translator consists of.
  it.each([
    [
      encodeStatus(internalErrorStatus("error executing command in container: no such file")),
      internalErrorStatus("Internal error occurred: error executing command in container: no such file"),
    ],
    [
      encodeStatus(exitCodeStatus(7, "error executing command [sh -c x], exit code 7")),
      exitCodeStatus(7, "command terminated with exit code 7"),
    ],
    [encodeStatus(successStatus()), successStatus()],
  ])("of a runtime is rewritten at the node, as a kubelet does", (sent, expected) => {
    const rewritten = new CommandResult("v4.channel.k8s.io", true);
    rewritten.receive(sent);
    expect(JSON.parse(Buffer.from(rewritten.conclude().status).toString())).toEqual(expected);
    const verbatim = new CommandResult("v4.channel.k8s.io");
    verbatim.receive(sent);
    expect(Buffer.from(verbatim.conclude().status)).toEqual(Buffer.from(sent));
  });
});
