import { ConnectError } from "@sluice/client/internal/http/upstream/connect-error";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { SessionError } from "@sluice/client/internal/sessions/session-error";
import { maskControls } from "../../observability/mask-controls.ts";
import { EXIT_BROKEN_PIPE } from "../command.ts";

/** Prints the error on stderr, in kubectl's words if it has any, and returns the exit code. */
export function reportError(error: unknown): number {
  if (isBrokenPipe(error)) return EXIT_BROKEN_PIPE;
  const isKnown =
    error instanceof ConnectError || error instanceof SessionError || error instanceof UpstreamError;
  if (!isKnown) throw error;
  process.stderr.write(`${maskControls(textOf(error))}\n`);
  return 1;
}

/** Prints a warning on stderr; names from containers cannot act on the terminal. */
export function printWarning(text: string): void {
  process.stderr.write(maskControls(`warning: ${text}\n`));
}

function textOf(error: ConnectError | SessionError | UpstreamError): string {
  if (!(error instanceof ConnectError)) return `error: ${error.message}`;
  const { apiStatus, leg, message } = error;
  if (apiStatus?.message !== undefined) {
    if (apiStatus.reason === "Unauthorized")
      return `error: You must be logged in to the server (${apiStatus.message})`;
    const reason = apiStatus.reason ? ` (${apiStatus.reason})` : "";
    return `Error from server${reason}: ${message.replace(/^unable to upgrade streaming request: /, "")}`;
  }
  if (leg === "tcp" || leg === "tls" || leg === "proxy" || leg === "response") {
    return `Unable to connect to the server: ${message}`;
  }
  return `error: ${message}`;
}

function isBrokenPipe(error: unknown): boolean {
  const cause =
    error instanceof SessionError ? (error.cause as NodeJS.ErrnoException | undefined) : undefined;
  return cause?.code === "EPIPE";
}
