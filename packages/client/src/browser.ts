// @sluice/client/browser: exec for programs that have the global WebSocket and nothing of Node's

export type { TerminalSize } from "@sluice/protocols/remotecommand";
export type { BrowserStreams } from "./browser-command.ts";
export { type BrowserCluster, exec } from "./browser-exec.ts";
export type { CommandEnd } from "./command-end.ts";
export { ConnectError, type ConnectErrorDetails, type ConnectLeg } from "./http/upstream/connect-error.ts";
export type { PodReference } from "./pod-paths.ts";
export { SessionError, type SessionErrorCode } from "./sessions/session-error.ts";
