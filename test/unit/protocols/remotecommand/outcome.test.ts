import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodeStatus,
  encodeStatus,
  exitCodeStatus,
  internalErrorStatus,
  outcomeOf,
  REMOTE_COMMAND_VERSIONS,
  type RemoteCommandVersion,
  specOf,
  statusPayload,
  successStatus,
} from "../../../../protocols/remotecommand/index.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

describe("encodeStatus", () => {
  // Captured from containerd 2.1 (the command and the container id shortened).
  const rows: [name: string, status: ReturnType<typeof successStatus>, wire: string][] = [
    ["success", successStatus(), '{"metadata":{},"status":"Success"}'],
    [
      "an exit code",
      exitCodeStatus(7, "error executing command [/bin/sh -c echo E >&2; exit 7], exit code 7"),
      '{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: error executing command [/bin/sh -c echo E \\u003e\\u00262; exit 7], exit code 7","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}',
    ],
    [
      "an internal error",
      internalErrorStatus("error executing command in container: <nil>"),
      '{"metadata":{},"status":"Failure","message":"Internal error occurred: error executing command in container: \\u003cnil\\u003e","reason":"InternalError","details":{"causes":[{"message":"error executing command in container: \\u003cnil\\u003e"}]},"code":500}',
    ],
  ];
  for (const [name, status, wire] of rows) {
    it(`writes ${name} as containerd does, and reads it back`, () => {
      expect(decoder.decode(encodeStatus(status))).toBe(wire);
      expect(decodeStatus(encodeStatus(status))).toEqual(status);
    });
  }

  it("reads back any message", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (message) => {
        const status = internalErrorStatus(message);
        expect(decodeStatus(encodeStatus(status))).toEqual(status);
      }),
    );
  });
});

describe("outcomeOf", () => {
  const exit7 = "command terminated with non-zero exit code: error executing command [x], exit code 7";
  const textVersions = REMOTE_COMMAND_VERSIONS.filter((version) => !/^v[45]/.test(version));
  const statusVersions = REMOTE_COMMAND_VERSIONS.filter((version) => /^v[45]/.test(version));

  const rows: [name: string, versions: typeof textVersions, text: string, outcome: object][] = [
    ["silence as success", textVersions, "", { type: "success" }],
    ["an exit code", textVersions, exit7, { type: "exit", code: 7, message: exit7 }],
    [
      "another text as failure",
      textVersions,
      "boom, exit code 7",
      { type: "failure", message: "boom, exit code 7" },
    ],
    ["silence as missing", statusVersions, "", { type: "missing" }],
    ["success", statusVersions, '{"metadata":{},"status":"Success"}', { type: "success" }],
    ["success without metadata", statusVersions, '{"status":"Success"}', { type: "success" }],
    [
      "exit code 255",
      statusVersions,
      failure("NonZeroExitCode", exitCause("255")),
      { type: "exit", code: 255 },
    ],
    ["a failure", statusVersions, failure("InternalError", []), { type: "failure", message: "m" }],
    [
      "exit code 256",
      statusVersions,
      failure("NonZeroExitCode", exitCause("256")),
      protocolError('invalid exit code value "256"'),
    ],
    [
      "a signed exit code",
      statusVersions,
      failure("NonZeroExitCode", exitCause("+7")),
      protocolError('invalid exit code value "+7"'),
    ],
    [
      "no exit code cause",
      statusVersions,
      failure("NonZeroExitCode", []),
      protocolError("no ExitCode cause given"),
    ],
    [
      "no details",
      statusVersions,
      '{"status":"Failure","reason":"NonZeroExitCode"}',
      protocolError("details must be set"),
    ],
    ["an unknown status", statusVersions, '{"status":"Maybe"}', protocolError("unknown error")],
    ["text where JSON is due", statusVersions, "boom", protocolError("not a Status: boom")],
    ["JSON that is no Status", statusVersions, "[1]", protocolError("not a Status: [1]")],
  ];
  for (const [name, versions, text, outcome] of rows) {
    it(`takes ${name}`, () => {
      for (const version of versions) expect(outcomeOf(version, encoder.encode(text))).toMatchObject(outcome);
    });
  }

  it("never throws", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array(),
          fc.json().map((json) => encoder.encode(json)),
        ),
        (bytes) => {
          for (const version of REMOTE_COMMAND_VERSIONS) outcomeOf(version, bytes);
        },
      ),
    );
  });
});

describe("statusPayload", () => {
  const text = (version: RemoteCommandVersion, status: string) =>
    new TextDecoder().decode(statusPayload(version, encoder.encode(status)));
  const jsonVersions = REMOTE_COMMAND_VERSIONS.filter((version) => specOf(version).hasStatusJson);
  const textVersions = REMOTE_COMMAND_VERSIONS.filter((version) => !specOf(version).hasStatusJson);

  it.each(jsonVersions)("%s: the Status itself", (version) => {
    for (const status of [SUCCESS, failure("X", []), "no JSON"]) expect(text(version, status)).toBe(status);
  });

  it.each(textVersions)("%s: its message; silence is success and nothing else", (version) => {
    expect(text(version, SUCCESS)).toBe("");
    expect(text(version, failure("X", []))).toBe("m");
    expect(text(version, '{"status":"Failure","reason":"Gone"}')).toBe("Gone");
    for (const status of ['{"status":"Failure"}', '{"status":"Failure","message":""}', "{}", "", "no JSON"]) {
      expect(text(version, status)).toBe("the command failed");
    }
  });
});

const SUCCESS = '{"metadata":{},"status":"Success"}';

function exitCause(message: string): object[] {
  return [{ reason: "ExitCode", message }];
}

function failure(reason: string, causes: object[]): string {
  return JSON.stringify({ metadata: {}, status: "Failure", message: "m", reason, details: { causes } });
}

function protocolError(problem: string): object {
  return { type: "failure", message: `error stream protocol error: ${problem}` };
}
