import { describe, expect, it } from "vitest";
import { defaultSpdyLimits, FRAME_TYPE } from "../../../../../protocols/spdy/constants.ts";
import { checkControlHeader } from "../../../../../protocols/spdy/frames/control-frame.ts";

const malformed = (message: string) => expect.objectContaining({ code: "malformed-frame", message });

const limits = { ...defaultSpdyLimits, maxControlFrameBytes: 100 };

describe("checkControlHeader", () => {
  it.each([
    ["SYN_STREAM", 10, false],
    ["SYN_REPLY", 4, false],
    ["RST_STREAM", 8, true],
    ["SETTINGS", 4, false],
    ["PING", 4, true],
    ["GOAWAY", 8, true],
    ["HEADERS", 4, false],
    ["WINDOW_UPDATE", 8, true],
  ] as const)("%s has at least %i bytes; exactly: %s", (name, bytes, isExact) => {
    const type = FRAME_TYPE[name];
    for (let length = 0; length <= 100; length += 1) {
      const act = () => checkControlHeader(type, length, limits);
      if (length === bytes || (length > bytes && !isExact)) expect(act()).toBe(type);
      else expect(act).toThrow(malformed(`${name} of ${length} bytes`));
    }
    const tooLarge = expect.objectContaining({ code: "frame-too-large", message: `${name} of 101 bytes` });
    expect(() => checkControlHeader(type, 101, limits)).toThrow(tooLarge);
  });

  it.each([0, 5, 10, 0xffff])("refuses type %i", (type) => {
    expect(() => checkControlHeader(type, 4, limits)).toThrow(malformed(`a control frame of type ${type}`));
  });
});
