// packages/client: dialling an API server, executors, port-forwarding, fallback from WebSocket to
// SPDY

export type { TerminalSize } from "@sluice/protocols/remotecommand";
export { type Cluster, type ContainerName, exec, type LogOptions, openCluster, readLog } from "./cluster.ts";
export type { CommandEnd } from "./command-end.ts";
export type { CommandStreams } from "./command-run.ts";
export { ConfigurationError } from "./config/configuration-error.ts";
export { type DialRequest, dial, shouldFallBack, type UpgradedConnection } from "./connect.ts";
export type { CopyProgress } from "./copy/copy-context.ts";
export { CopyError, type CopyErrorCode } from "./copy/copy-error.ts";
export { type CopyOptions, copyFrom, copyTo } from "./copy-files.ts";
export { dialResumable } from "./dial-resumable.ts";
export {
  type Executor,
  type ExecutorOptions,
  FallbackExecutor,
  SpdyExecutor,
  WebSocketExecutor,
} from "./executors.ts";
export { type Forward, forward } from "./forward.ts";
export { ForwardedStream } from "./forwarded-stream.ts";
export { getObject } from "./get-object.ts";
export { ConnectError, type ConnectErrorDetails, type ConnectLeg } from "./http/upstream/connect-error.ts";
export { CredentialsError } from "./kubernetes/credentials-error.ts";
export { type Kubeconfig, loadKubeconfig } from "./kubernetes/kubeconfig.ts";
export type { KubeconfigOverrides } from "./kubernetes/kubeconfig-overrides.ts";
export type { UpstreamTlsOptions as TargetTlsOptions } from "./net/tls.ts";
export { attachPath, type CommandPath, execPath, type PodReference, portForwardPath } from "./pod-paths.ts";
export { PortForwardConnection } from "./port-forward-connection.ts";
export { FallbackDialer, type PortForwardDialer, SpdyDialer, TunnelDialer } from "./port-forward-dialers.ts";
export {
  type ListeningPort,
  PortForwarder,
  type PortForwarderOptions,
  type PortMapping,
  parsePortArgument,
} from "./port-forwarder.ts";
export type { ResumeOptions } from "./session-times.ts";
export { defaultSessionTimes, type SessionTimes } from "./session-times.ts";
export type { InputStream } from "./sessions/input-source.ts";
export type { OutputStream, PartTaker } from "./sessions/output-sink.ts";
export { SessionError, type SessionErrorCode } from "./sessions/session-error.ts";
export { type ConnectTrace, kubeconfigTarget, Target, type TargetOptions } from "./target.ts";
