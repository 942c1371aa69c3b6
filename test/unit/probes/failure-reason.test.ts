import { describe, expect, it } from "vitest";
import { errored, failure, type ProbeResult, success, warning } from "../../../src/probes/probe-result.ts";
import { failureReasonOf } from "../../../src/probes/worker/prober.ts";

describe("why a probe failed, for the log", () => {
  const cases: [string, ProbeResult, boolean, string | undefined][] = [
    ["a success", success("body", { status: 200 }), false, undefined],
    [
      "an HTTP status",
      failure("HTTP probe failed with statuscode: 503", { status: 503 }),
      false,
      "HTTP status 503",
    ],
    [
      "a redirect",
      warning("Probe terminated redirects, Response body: s3cret", { status: 302, redirects: [] }),
      false,
      "redirects to another host",
    ],
    [
      "nothing listens",
      failure(
        'Get "http://10.0.0.1:80/?token=s3cret": dial tcp 10.0.0.1:80: connect: connection refused',
        {},
      ),
      false,
      "connection refused",
    ],
    [
      "silence",
      failure('Get "http://10.0.0.1:80/s3cret": context deadline exceeded', {}),
      false,
      "timed out",
    ],
    [
      "gRPC",
      failure('service unhealthy (responded with "NOT_SERVING")', { grpcStatus: "OK" }),
      false,
      "gRPC: the service is not SERVING",
    ],
    [
      "a gRPC status",
      failure("error: s3cret", { grpcStatus: "UNIMPLEMENTED" }),
      false,
      "gRPC status UNIMPLEMENTED",
    ],
    ["an exit code", failure("s3cret: connection refused", {}), true, "the command's exit code is not 0"],
    ["no command", errored("s3cret"), true, "the command could not be run"],
    ["anything else", failure("s3cret", {}), false, "the answer could not be read"],
  ];
  it.each(cases)("%s", (_name, result, isCommand, reason) => {
    expect(failureReasonOf(result, isCommand)).toBe(reason);
  });
});
