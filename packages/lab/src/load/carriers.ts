import { finished } from "node:stream/promises";
import {
  type ExecutorOptions,
  type PortForwardDialer,
  SpdyDialer,
  SpdyExecutor,
  type Target,
  TunnelDialer,
  WebSocketExecutor,
} from "@sluice/client";
import type { Carrier } from "./carrier.ts";
import { legacyForward } from "./legacy-forward.ts";
import { LoadError } from "./load-error.ts";
import type { LoadPlan } from "./load-plan.ts";

export function carrierOf(plan: LoadPlan, target: Target): Carrier {
  const options = { dialTimeoutMs: plan.timeoutMs, responseHeaderTimeoutMs: plan.timeoutMs };
  return plan.kind === "port-forward"
    ? forwardCarrier(plan, target, options)
    : commandCarrier(plan, target, options);
}

function commandCarrier({ protocol, path }: LoadPlan, target: Target, options: ExecutorOptions): Carrier {
  const executor =
    protocol === "spdy"
      ? new SpdyExecutor(target, () => path, options)
      : new WebSocketExecutor(target, () => path, options, [
          protocol === "ws-v4" ? "v4.channel.k8s.io" : "v5.channel.k8s.io",
        ]);
  return async (stdin, stdout, signal) => {
    const { exitCode, message } = await executor.stream({ stdin, stdout, signal });
    if (exitCode !== 0) throw new LoadError("session", `exit code ${exitCode}`, message);
  };
}

function forwardCarrier(plan: LoadPlan, target: Target, options: ExecutorOptions): Carrier {
  const { protocol, path, port } = plan;
  if (protocol === "legacy") return legacyForward(target, path, options);
  const dialer: PortForwardDialer =
    protocol === "spdy" ? new SpdyDialer(target, path, options) : new TunnelDialer(target, path, options);
  return async (input, output, signal) => {
    const connection = await dialer.dial(signal);
    try {
      const stream = connection.openStream(port);
      const onAbort = (): void => void stream.destroy(new LoadError("session", "aborted", "aborted"));
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) onAbort();
      try {
        if (input === undefined) stream.end();
        else input.pipe(stream);
        stream.pipe(output, { end: false });
        await finished(stream);
      } finally {
        signal.removeEventListener("abort", onAbort);
        input?.unpipe(stream);
      }
    } finally {
      connection.close();
    }
  };
}
