// For a page, through its bundler: runs a command in a pod, and shows its output as it comes.
import { exec } from "@sluice/client/browser";

export async function run({ url, token }, pod, command, input, show) {
  const stdin = new Blob([input]).stream();
  const text = new TextDecoder();
  const stdout = new WritableStream({ write: (part) => show(text.decode(part, { stream: true })) });
  const { exitCode } = await exec({ url, token }, { pod }, command, { stdin, stdout });
  return exitCode;
}
