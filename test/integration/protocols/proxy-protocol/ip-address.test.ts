import net from "node:net";
import fc from "fast-check";
import { expect, it } from "vitest";
import { isIPv4, isIPv6 } from "../../../support/protocols/proxy-protocol/text-addresses.ts";

const texts = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.string({
    unit: fc.constantFrom("0", "1", "255", "256", "f", "FFFF", "g", ":", "::", "."),
    maxLength: 16,
  }),
);

it("are IP addresses where Node has them for ones", () => {
  fc.assert(
    fc.property(texts, (text) => {
      expect([text, isIPv4(text)]).toEqual([text, net.isIPv4(text)]);
      expect([text, isIPv6(text)]).toEqual([text, net.isIPv6(text)]);
    }),
    { numRuns: 3_000 },
  );
});
