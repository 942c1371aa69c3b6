import type { HTTPHeader, ProbeHandler } from "../../api/probe-objects.ts";
import { UsageError } from "../command.ts";

interface UrlProbeFlags {
  readonly protocol?: string | undefined;
  readonly service?: string | undefined;
  readonly mode?: string | undefined;
  readonly header: readonly string[];
}

interface UrlProbe {
  readonly handler: ProbeHandler;
  readonly host: string;
  readonly port: number;
}

/** `http://HOST:PORT/PATH`, `https://`, `grpc://HOST:PORT`, `tcp://HOST:PORT`. Throws UsageError. */
export function parseProbeUrl(text: string, flags: UrlProbeFlags): UrlProbe {
  const [, scheme, rest = ""] = /^(http|https|grpc|tcp):\/\/(.+)$/.exec(text) ?? [];
  // Parses host and port by http's rules, which cover IPv6; keeps the path as written.
  const [, authority = "", path = ""] = /^([^/?#]*)(.*)$/s.exec(rest) ?? [];
  if (scheme === undefined || !URL.canParse(`http://${authority}/`)) {
    throw new UsageError(`${JSON.stringify(text)} is not an http://, https://, grpc:// or tcp:// URL`);
  }
  const host = new URL(`http://${authority}/`).hostname.replace(/^\[|\]$/g, "");
  const port = portOf(authority, scheme, text);
  refuseForeignFlags(scheme, flags);
  return { handler: handlerOf(scheme, port, path, flags), host, port };
}

function handlerOf(scheme: string, port: number, path: string, flags: UrlProbeFlags): ProbeHandler {
  switch (scheme) {
    case "tcp":
      return { tcpSocket: { port } };
    case "grpc":
      return { grpc: { port, service: flags.service ?? "", ...(flags.mode && { mode: flags.mode }) } };
    default:
      return {
        httpGet: {
          port,
          path: path === "" ? "/" : path,
          scheme: scheme.toUpperCase(),
          ...(flags.protocol && { protocol: flags.protocol }),
          ...(flags.header.length > 0 && { httpHeaders: flags.header.map(headerOf) }),
        },
      };
  }
}

function portOf(authority: string, scheme: string, text: string): number {
  const given = /:(\d+)$/.exec(authority)?.[1];
  if (given !== undefined) return Number(given);
  if (scheme === "http") return 80;
  if (scheme === "https") return 443;
  throw new UsageError(`${JSON.stringify(text)} needs a port`);
}

function headerOf(line: string): HTTPHeader {
  const colon = line.indexOf(":");
  if (colon < 1) throw new UsageError(`--header ${JSON.stringify(line)} is no "Name: value"`);
  return { name: line.slice(0, colon).trim(), value: line.slice(colon + 1).trim() };
}

const FLAGS_OF: Readonly<Record<string, readonly (keyof UrlProbeFlags)[]>> = {
  http: ["protocol", "header"],
  https: ["header"],
  grpc: ["service", "mode"],
  tcp: [],
};

function refuseForeignFlags(scheme: string, flags: UrlProbeFlags): void {
  for (const name of ["protocol", "service", "mode", "header"] as const) {
    if (flags[name] === undefined || flags[name].length === 0 || FLAGS_OF[scheme]?.includes(name)) continue;
    const why = name === "protocol" && scheme === "https" ? "; https negotiates HTTP/2 by itself" : "";
    throw new UsageError(`--${name} does not apply to ${scheme}://${why}`);
  }
}
