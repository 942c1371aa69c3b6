import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";

/**
 * A URL without a scheme (cri-dockerd: `//[::]:41237/cri/exec/...`) means http. Throws StatusError
 * 500, without the URL in its text.
 */
export function parseStreamingUrl(text: string): URL {
  const url = parse(text.startsWith("//") ? `http:${text}` : text);
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.hostname === "") {
    throw WIRE_ERRORS["runtime-url"].kubelet();
  }
  // A server that listens on all addresses is on this machine.
  if (url.hostname === "0.0.0.0" || url.hostname === "[::]") url.hostname = "localhost";
  return url;
}

function parse(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}
