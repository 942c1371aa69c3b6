import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import { DeadlineError } from "./exchange-error.ts";
import { openSocket } from "./open-socket.ts";
import type { ProbeDeadline } from "./probe-deadline.ts";
import { failure, type ProbeResult, success, type WireFacts } from "./probe-result.ts";

/** Connects, and closes at once. */
export async function probeTcp(host: string, port: number, deadline: ProbeDeadline): Promise<ProbeResult> {
  const wire: WireFacts = {};
  try {
    const socket = await openSocket({ host, port }, deadline);
    socket.destroy();
    wire.protocol = "tcp";
    return success("", wire);
  } catch (error) {
    if (error instanceof DeadlineError) return failure(overText(host, port, deadline), wire);
    return failure((error as Error).message, wire);
  }
}

function overText(host: string, port: number, deadline: ProbeDeadline): string {
  const reason = deadline.reason === "cancelled" ? "operation was canceled" : "i/o timeout";
  return `dial tcp ${joinHostPort(host, port)}: ${reason}`;
}
