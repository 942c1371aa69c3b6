import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { configurationReference } from "../../support/configuration-reference.ts";

const file = fileURLToPath(new URL("../../../docs/configuration.md", import.meta.url));

it("docs/configuration.md is what `npm run docs` writes", async () => {
  await expect(configurationReference()).toMatchFileSnapshot(file);
});
