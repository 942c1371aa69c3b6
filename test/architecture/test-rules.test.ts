import path from "node:path";
import { describe, expect, it } from "vitest";
import { LONG_TESTS } from "../support/long-tests.ts";
import { importsOf, readSource, typeScriptFilesIn } from "./source-files.ts";

const SERVERS_AND_PROCESSES =
  /^node:(?:child_process|cluster|dgram|http|http2|https|inspector|net|tls|worker_threads)$/;

/** What a file loads: types leave no import behind. */
const loadedBy = (file: string): string[] =>
  importsOf(readSource(file).replaceAll(/^(?:im|ex)port type [^;]*;/gm, "")).flatMap(
    ({ specifier }) => specifier ?? [],
  );

const tests = typeScriptFilesIn("test");

describe("tests", () => {
  it("of units load no servers, processes or sockets, themselves or by test/support", () => {
    const queue = typeScriptFilesIn("test/unit").map((file) => [file]);
    const seen = new Set<string>();
    const violations: string[] = [];
    for (const trail of queue) {
      const file = trail.at(-1) as string;
      for (const specifier of loadedBy(file)) {
        if (SERVERS_AND_PROCESSES.test(specifier)) violations.push([...trail, specifier].join(" -> "));
        const target = path.posix.join(path.posix.dirname(file), specifier);
        if (!specifier.startsWith(".") || !target.startsWith("test/") || seen.has(target)) continue;
        seen.add(target);
        queue.push([...trail, target]);
      }
    }
    expect(violations).toEqual([]);
  });

  it("start gateways in test/support/test-gateway.ts, and processes that serve in served-gateway.ts", () => {
    const starting = tests.filter((file) =>
      loadedBy(file).some((specifier) => specifier.endsWith("/src/app/app.ts")),
    );
    expect(starting).toEqual(["test/support/test-gateway.ts"]);
    const serving = tests.filter((file) => /sluiceCommand\("serve"/.test(readSource(file)));
    expect(serving).toEqual(["test/support/served-gateway.ts"]);
  });

  it("that are long are there, and each of their rooms has others in npm test", () => {
    const files = typeScriptFilesIn("test/integration").filter((file) => file.endsWith(".test.ts"));
    expect(LONG_TESTS.filter((file) => !files.includes(file))).toEqual([]);
    const roomOf = (file: string): string | undefined => file.split("/")[2];
    const quick = new Set(files.filter((file) => !LONG_TESTS.includes(file)).map(roomOf));
    expect(LONG_TESTS.filter((file) => !quick.has(roomOf(file)))).toEqual([]);
  });
});
