import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { parseYamlDocuments } from "../../packages/client/src/config/yaml-documents.ts";
import { KubectlRunner } from "../support/kubectl.ts";
import { MANIFEST_KEYS, MANIFEST_WORDS, manifestOf } from "../support/manifest-words.ts";
import { describeReal, kubectlSample } from "../support/real-parts.ts";

const CASES = 5_000;
const SEED = 28;

/** Words near to numbers, booleans and dates: of the characters that decide between them. */
const nearNumbers = fc.oneof(
  fc.stringMatching(/^[-+]?[0-9._]{1,4}([eExXbo_:.-][-+]?[0-9a-f_.]{0,4})?$/),
  fc.stringMatching(/^[-+]?0[xXbBoO]?[0-9a-f_]{0,5}$/),
  fc.stringMatching(/^[-+]?\.[iInN][nNaA][fFnN]$/),
  fc.stringMatching(/^[yYnNtToOfF~][a-zA-Z]{0,4}$/),
  fc.stringMatching(/^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([tT ][0-9]{1,2}:[0-9]{2}:[0-9]{2}Z?)?$/),
);
/** What JSON cannot carry is an error to kubectl; "-" and ":" begin or end other things than words. */
const isWord = (word: string): boolean =>
  !/^[-+]?\.(?:inf|Inf|INF|nan|NaN|NAN)$/.test(word) && !/^-$|:$/.test(word);

describeReal("kubectl", "words of manifests", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-words-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  describe.each(kubectlSample())("kubectl $version", (kubectl) => {
    const runner = new KubectlRunner(kubectl);
    afterAll(() => rmSync(runner.folder, { recursive: true, force: true }));

    const compare = async (words: readonly string[], keys: readonly string[]) => {
      const text = manifestOf(words, keys);
      const file = path.join(folder, "words.yaml");
      writeFileSync(file, text);
      const result = await runner.run(["label", "--local", "-f", file, "-o", "json", "a=b"]);
      expect(result.exitCode, result.stderr).toBe(0);
      const theirs = JSON.parse(result.stdout) as { values: unknown[]; keys: unknown };
      const [document] = parseYamlDocuments(text, file, { isManifest: true });
      // Through JSON, which has no -0.
      const ours = JSON.parse(JSON.stringify(document?.value)) as { values: unknown[]; keys: unknown };
      const different = words.flatMap((word, index) =>
        Object.is(ours.values[index], theirs.values[index])
          ? []
          : [{ word, ours: ours.values[index], kubectl: theirs.values[index] }],
      );
      expect({ different, keys: ours.keys }).toEqual({ different: [], keys: theirs.keys });
    };

    it("are read alike: those of the table", async () => {
      await compare(
        MANIFEST_WORDS.map(([word]) => word),
        MANIFEST_KEYS.map(([key]) => key),
      );
    });

    it(`are read alike: ${CASES} words near to numbers, booleans and dates`, async () => {
      await compare(fc.sample(nearNumbers.filter(isWord), { numRuns: CASES, seed: SEED }), ["k"]);
    });
  });
});
