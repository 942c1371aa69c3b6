import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  encodeAgreement,
  encodeOffer,
  encodeResumed,
  encodeResumption,
  parseAgreement,
  parseRequest,
  parseResumed,
  proofTextOf,
} from "../../../../protocols/resume/index.ts";

const SESSION = "AAECAwQFBgcICQoLDA0ODw";
const KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const agreement = {
  protocol: "SPDY/3.1+portforward.k8s.io",
  session: SESSION,
  key: KEY,
  windowBytes: 1_048_576,
  windowSeconds: 120,
};
const resumption = { session: SESSION, attempt: 3, received: 12_345, proof: KEY };

describe("the negotiation of resumable sessions", () => {
  it("reads what it writes", () => {
    expect(parseRequest(encodeOffer({ windowBytes: 65_536 }))).toEqual({
      type: "offer",
      windowBytes: 65_536,
    });
    expect(parseRequest(encodeResumption(resumption))).toEqual({ type: "resumption", ...resumption });
    expect(parseAgreement(encodeAgreement(agreement))).toEqual(agreement);
    expect(parseResumed(encodeResumed(99))).toBe(99);
  });

  it("signs everything that a server acts on", () => {
    const texts = [resumption, { ...resumption, attempt: 4 }, { ...resumption, received: 1 }].map(
      proofTextOf,
    );
    expect(new Set(texts).size).toBe(3);
    expect(texts[0]).toBe(`sluice-resume v1\n${SESSION}\n3\n12345\n`);
  });

  it.each([
    "",
    "v1",
    "v2; window-bytes=1",
    "v1; window-bytes=-1",
    "v1; window-bytes=1e3",
    "v1; window-bytes=01",
    "v1; window-bytes=99999999999999999999",
    "v1; window-bytes=1; window-bytes=2",
    `v1; session=${SESSION}; attempt=1; received=2`,
    `v1; session=${SESSION.slice(1)}; attempt=1; received=2; proof=${KEY}`,
    `v1; session=${SESSION}; attempt=1; received=9007199254740993; proof=${KEY}`,
    `v1; session=${SESSION}; attempt=1; received=2; proof=${KEY.slice(1)}=`,
    `v1; ${"a=b; ".repeat(9)}window-bytes=1`,
    `v1; window-bytes=1; x=${"y".repeat(600)}`,
  ])("refuses the request %j", (value) => {
    expect(parseRequest(value)).toBeUndefined();
  });

  it("takes parameters that it does not know for those of a later version", () => {
    expect(parseRequest("v1; window-bytes=1; colour=blue")).toEqual({ type: "offer", windowBytes: 1 });
  });

  it("never throws", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        parseRequest(text);
        parseAgreement(`v1; ${text}`);
        parseResumed(text);
      }),
    );
  });
});
