import { describe, expect, it } from "vitest";
import { cliPage } from "../support/cli-page.ts";

describe("docs/cli.md", () => {
  it("is what npm run docs writes from the tables of commands", async () => {
    await expect(await cliPage()).toMatchFileSnapshot("../../docs/cli.md");
  });
});
