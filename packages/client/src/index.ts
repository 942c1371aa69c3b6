// packages/client: dialling an API server, executors, port-forwarding, fallback from WebSocket to
// SPDY

export type { TerminalSize } from "@sluice/protocols/remotecommand";
export type { CommandEnd, CommandStreams } from "./command-run.ts";
export { type DialRequest, dial, type UpgradedConnection } from "./connect.ts";
export { dialResumable } from "./dial-resumable.ts";
export {
  type Executor,
  type ExecutorOptions,
  FallbackExecutor,
  SpdyExecutor,
  shouldFallBack,
  WebSocketExecutor,
} from "./executors.ts";
export { ForwardedStream } from "./forwarded-stream.ts";
export { getObject } from "./get-object.ts";
export { ConnectError, type ConnectErrorDetails, type ConnectLeg } from "./http/upstream/connect-error.ts";
export type { InputStream } from "./input-source.ts";
export { kubeconfigTarget } from "./kubeconfig-target.ts";
export { type Kubeconfig, loadKubeconfig } from "./kubernetes/kubeconfig.ts";
export type { KubeconfigOverrides } from "./kubernetes/kubeconfig-overrides.ts";
export type { UpstreamTlsOptions as TargetTlsOptions } from "./net/tls.ts";
export type { OutputStream, PartTaker } from "./output-sink.ts";
export { attachPath, type CommandPath, execPath, type PodReference, portForwardPath } from "./pod-paths.ts";
export { type PortMapping, parsePortArgument } from "./port-argument.ts";
export { PortForwardConnection } from "./port-forward-connection.ts";
export { FallbackDialer, type PortForwardDialer, SpdyDialer, TunnelDialer } from "./port-forward-dialers.ts";
export { type ListeningPort, PortForwarder, type PortForwarderOptions } from "./port-forwarder.ts";
export type { ResumeOptions } from "./resume-options.ts";
export { SessionError, type SessionErrorCode } from "./session-error.ts";
export { defaultSessionTimes, type SessionTimes } from "./session-times.ts";
export { type ConnectTrace, Target, type TargetOptions } from "./target.ts";
