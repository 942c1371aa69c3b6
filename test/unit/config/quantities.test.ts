import { describe, expect, it } from "vitest";
import { nearestName } from "../../../packages/client/src/config/nearest-name.ts";
import { formatQuantity, parseQuantity } from "../../../packages/client/src/config/quantity.ts";
import { formatDuration, parseDuration } from "../../../src/config/number-fields.ts";

describe("durations", () => {
  it.each([
    ["0", 0],
    ["0s", 0],
    ["30s", 30_000],
    ["4h0m0s", 14_400_000],
    ["1h15m30.918s", 4_530_918],
    ["1.5s", 1_500],
    [".5m", 30_000],
    ["1.h", 3_600_000],
    ["20ms", 20],
    ["1500us", 1],
    ["1500µs", 1],
    ["1500μs", 1],
    ["2000000ns", 2],
    ["-5s", -5_000],
    ["+5s", 5_000],
    ["1.001s", 1_001],
    ["8.2m", 492_000],
    ["0.1h0.1m", 366_000],
    ["1.0000000000000000000000001s", 1_000],
    ["2562047h47m16.854775807s", 9_223_372_036_854],
    ["-2562047h47m16.854775808s", -9_223_372_036_854],
  ])("%s is %d ms", (text, milliseconds) => {
    expect(parseDuration(text)).toBe(milliseconds);
  });

  it.each([
    ["", 'time: invalid duration ""'],
    ["-", 'time: invalid duration "-"'],
    ["forever", 'time: invalid duration "forever"'],
    ["30", 'time: missing unit in duration "30"'],
    ["1m30", 'time: missing unit in duration "1m30"'],
    ["1d", 'time: unknown unit "d" in duration "1d"'],
    ["5S", 'time: unknown unit "S" in duration "5S"'],
    [" 5s", 'time: invalid duration " 5s"'],
    ["5s\n", 'time: unknown unit "s\\n" in duration "5s\\n"'],
    [".s", 'time: invalid duration ".s"'],
    ["2562047h47m16.854775808s", 'time: invalid duration "2562047h47m16.854775808s"'],
    ["-2562047h47m16.854775809s", 'time: invalid duration "-2562047h47m16.854775809s"'],
    [`${"9".repeat(40)}ns`, `time: invalid duration "${"9".repeat(40)}ns"`],
  ])("%j is refused in Go's words", (text, message) => {
    expect(() => parseDuration(text)).toThrow(new RangeError(message));
  });

  it.each([
    [0, "0s"],
    [20, "20ms"],
    [1_500, "1.5s"],
    [30_000, "30s"],
    [90_000, "1m30s"],
    [14_400_000, "4h0m0s"],
  ])("%d ms is written %s, as Go does, and read back", (milliseconds, text) => {
    expect(formatDuration(milliseconds)).toBe(text);
    expect(parseDuration(text)).toBe(milliseconds);
  });
});

describe("quantities", () => {
  it.each([
    ["0", 0],
    ["65536", 65_536],
    ["64Ki", 65_536],
    ["1.5Mi", 1_572_864],
    ["2Gi", 2_147_483_648],
    ["10k", 10_000],
    ["1e3", 1_000],
    ["1M", 1_000_000],
    ["1.001k", 1_001],
    ["8672.37T", 8_672_370_000_000_000],
    ["+.5k", 500],
    ["2.", 2],
    ["3000m", 3],
    ["2000000u", 2],
    ["1E3", 1_000],
    ["1200e-2", 12],
    ["1P", 1e15],
  ])("%s is %d", (text, value) => {
    expect(parseQuantity(text)).toBe(value);
  });

  it.each([
    "",
    "Ki",
    "64KB",
    "64 Ki",
    "-1",
    "0.5",
    "1e3Ki",
    "100m",
    "9999999Ti",
    "0x10",
    "1e99",
    ".",
    "+",
    "1e",
    "1.001",
    "1500m",
    "9E",
    "1e999999999999",
    "1".repeat(100_000),
  ])("%j is refused", (text) => {
    expect(() => parseQuantity(text)).toThrow(RangeError);
  });

  it.each([
    [1_000, "1000"],
    [65_536, "64Ki"],
    [32 * 1024 * 1024, "32Mi"],
    [0, "0"],
  ])("%d is written %s", (value, text) => {
    expect(formatQuantity(value)).toBe(text);
  });
});

describe("nearestName", () => {
  const known = ["apiServer", "admin", "kubelet", "maxRequestHeaderBytes"];
  it.each([
    ["apiserver", "apiServer"],
    ["api-server", "apiServer"],
    ["adnim", "admin"],
    ["kublet", "kubelet"],
    ["maxRequestHeadersBytes", "maxRequestHeaderBytes"],
    ["something", undefined],
    ["x".repeat(100_000), undefined],
  ])("%s -> %s", (name, nearest) => {
    expect(nearestName(name, known)).toBe(nearest);
  });
});
