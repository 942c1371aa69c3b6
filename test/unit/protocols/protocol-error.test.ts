import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../../protocols/protocol-error.ts";

describe("ProtocolError", () => {
  it("is an error with its own name, and the code that edges map", () => {
    const error = new ProtocolError("frame-too-large", "a frame of 16 MiB");
    expect(error).toBeInstanceOf(Error);
    expect(`${error}`).toBe("ProtocolError: a frame of 16 MiB");
    expect(error.code).toBe("frame-too-large");
  });
});
