import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";

const root = path.resolve(import.meta.dirname, "../../..");
const picture = readFileSync(path.join(root, "docs/demo.svg"), "utf8");

describe("docs/demo.svg, the README's picture", () => {
  it("is what its recording draws", () => {
    execFileSync(process.execPath, ["scripts/draw-demo.mjs", "--check"], { cwd: root, stdio: "pipe" });
  });

  it("is small, needs nothing else, and can be read on a phone", () => {
    expect(Buffer.byteLength(picture)).toBeLessThan(200 * 1024);
    expect(picture.replace('xmlns="http://www.w3.org/2000/svg"', "")).not.toMatch(
      /https?:|href|url\(|<script|<style|<image/,
    );
    const [, width = ""] = /viewBox="0 0 (\d+) /.exec(picture) ?? [];
    const [, size = ""] = /font-size="(\d+)"/.exec(picture) ?? [];
    expect((Number(size) * 390) / Number(width)).toBeGreaterThan(9.5);
  });

  it("shows a command's exit code, and a session that is listed and ended", () => {
    expect(picture).toContain(">command terminated with exit code 7<");
    expect(picture).toMatch(/>[0-9a-f]{8} {3}web-ws +main +exec +demo +\d+s</);
    expect(picture).toMatch(/>session [0-9a-f-]{36} ended</);
  });
});
