import { expect, it } from "vitest";
import { readSource, sourceFiles, withoutComments } from "./source-files.ts";

const MADE =
  /(?<![#.\w])(?:badRequest|forbidden|genericError|internalError|methodNotAllowed|notFound|requestEntityTooLarge|resourceExpired|serviceUnavailable|tooManyRequests|unauthorized|unsupportedMediaType|unknownPath)\(/;

/** Files that pass an upstream's or another process's text on, or put a row's text into its form. */
const PASS_ON = [
  "src/app/runtime/worker-main.ts",
  "src/ingress/choose-backend.ts",
  "src/legs/api-server/pod-log.ts",
  "src/sessions/node-refusal.ts",
];

it("answers take their text from the table of wire errors", () => {
  const made = sourceFiles()
    .filter((file) => /^src\/(?!api\/|observability\/|access\/authz\/reviews\/)/.test(file))
    .filter((file) => MADE.test(withoutComments(readSource(file))));
  expect(made.sort()).toEqual(PASS_ON);
});
