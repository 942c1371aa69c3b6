import type { ConnectTrace } from "@sluice/client/internal/target";
import { maskControls } from "../../observability/mask-controls.ts";
import { UsageError } from "../usage-error.ts";

/** The output of `-v` on stderr. Credentials are masked at every level. */
export interface Verbosity {
  readonly trace: ConnectTrace;
  /** Prints a line from level 4 on. */
  note(text: string): void;
}

const SECRET_HEADERS = /^(?:authorization|proxy-authorization|cookie|set-cookie|sec-websocket-key)$/i;

/** Secrets in the header Sluice-Resume. */
const RESUME_SECRETS = /\b(key|proof)=[\w-]+/g;

/** Parses `level` like kubectl: `7`, or `=7` from `-v=7`. Throws UsageError. */
export function verbosityOf(level: string | undefined): Verbosity {
  const text = (level ?? "0").replace(/^=/, "");
  if (!/^\d{1,2}$/.test(text)) throw new UsageError(`-v ${text}: must be a number`);
  const number = Number(text);
  const write = (from: number, line: string): void => {
    if (number >= from) process.stderr.write(`${maskControls(line)}\n`);
  };
  const writeHeaders = (from: number, headers: readonly (readonly [string, string])[]): void => {
    for (const [name, value] of headers) {
      const shown = SECRET_HEADERS.test(name) ? value.replace(/(?<!\S)\S+$/, "<masked>") : value;
      write(from, `    ${name}: ${shown.replace(RESUME_SECRETS, "$1=<masked>")}`);
    }
  };
  return {
    note: (line) => write(4, line),
    trace: {
      request: (method, url, headers) => {
        write(6, `${method} ${withoutCommand(url)}`);
        write(7, "Request Headers:");
        writeHeaders(7, headers);
      },
      response: (status, statusText, headers, elapsedMs) => {
        write(6, `Response Status: ${status} ${statusText} in ${Math.round(elapsedMs)} milliseconds`);
        writeHeaders(8, headers);
      },
    },
  };
}

/** A command line may contain a password. */
function withoutCommand(url: string): string {
  return url.replace(/([?&]command=)[^&]*/g, "$1<masked>");
}
