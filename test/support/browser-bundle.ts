import path from "node:path";
import { rolldown } from "rolldown";

const EXAMPLE = path.resolve(import.meta.dirname, "../../packages/client/examples/browser.mjs");

/** The example for web pages as a bundler builds it: a module without imports. */
export async function browserBundle(): Promise<string> {
  const bundle = await rolldown({ input: EXAMPLE, platform: "browser", tsconfig: false });
  const { output } = await bundle.generate({ format: "esm" });
  await bundle.close();
  const [{ code, imports }] = output;
  if (output.length !== 1 || imports.length > 0) throw new Error(`the bundle imports ${imports}`);
  return code;
}
