import { expect, it } from "vitest";
import { evidenceTable } from "./evidence-table.ts";

it("rows that differ in a merged column alone become one, in the order of the first", () => {
  const rows = [
    ["1.20", "viewer", "403"],
    ["1.20", "operator", "works"],
    ["1.30", "viewer", "403"],
    ["1.30", "operator", "fails"],
  ];
  expect(evidenceTable(["kubectl", "user", "exec"], rows, [0])).toBe(`| kubectl | user | exec |
|---|---|---|
| 1.20, 1.30 | viewer | 403 |
| 1.20 | operator | works |
| 1.30 | operator | fails |`);
});
