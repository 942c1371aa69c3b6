// @sluice/client/browser: exec, attach and ports for programs that have the global WebSocket and nothing of Node's

export type { TerminalSize } from "@sluice/protocols/remotecommand";
export type { BrowserStreams } from "./browser-command.ts";
export { attach, exec } from "./browser-exec.ts";
export { type BrowserPort, openPort } from "./browser-port.ts";
export type { BrowserCluster } from "./browser-socket.ts";
export type { CommandEnd } from "./command-end.ts";
export { ConnectError, type ConnectErrorDetails, type ConnectLeg } from "./http/upstream/connect-error.ts";
export type { PodReference } from "./pod-paths.ts";
export { SessionError, type SessionErrorCode } from "./sessions/session-error.ts";
