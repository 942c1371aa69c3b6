// For a page, through its bundler: runs a command in a pod, joins its main process, reads its port.
import { attach, exec, openPort } from "@sluice/client/browser";

/** Shows the output of a command as it comes. */
export async function run(cluster, pod, command, input, show) {
  const stdin = new Blob([input]).stream();
  const { exitCode } = await exec(cluster, { pod }, command, { stdin, stdout: shown(show) });
  return exitCode;
}

/** Says a text to the main process, and shows what it prints until `signal` fires. */
export async function join(cluster, pod, text, show, signal) {
  // Without its end: that would be the end of the main process's input.
  const stdin = new ReadableStream({ start: (input) => input.enqueue(new TextEncoder().encode(text)) });
  await attach(cluster, { pod }, { stdin, stdout: shown(show), signal });
}

/** What a server in the pod answers to a request of HTTP/1.0. */
export async function get(cluster, pod, port, path) {
  const { readable, writable } = await openPort(cluster, { pod }, port);
  await writable.getWriter().write(new TextEncoder().encode(`GET ${path} HTTP/1.0\r\n\r\n`));
  let text = "";
  // Not through a Response: in Chromium it hides why the connection failed.
  await readable.pipeTo(shown((part) => (text += part)));
  return text;
}

function shown(show) {
  const text = new TextDecoder();
  return new WritableStream({ write: (part) => show(text.decode(part, { stream: true })) });
}
