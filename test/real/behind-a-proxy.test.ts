import { expect, it } from "vitest";
import { describeReal } from "../support/real-parts.ts";
import { typePage } from "../support/typed-page.ts";

describeReal(["nginx", "haproxy"], "docs/behind-a-proxy.md", () => {
  it("puts exec behind nginx and HAProxy by the commands that it says, and sluice conformance agrees", async () => {
    const { status, blocks } = await typePage("behind-a-proxy.md");
    expect(blocks.flatMap(({ missing, printed }) => missing.map((line) => ({ line, printed })))).toEqual([]);
    expect({ status, last: status === 0 ? "" : blocks.at(-1)?.printed }).toEqual({ status: 0, last: "" });
    expect(blocks).toHaveLength(4);
  }, 120_000);
});
