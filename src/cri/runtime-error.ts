/** gRPC's status codes in Go's names, by number: kubelets quote them in errors of runtimes and of probes. */
export const GRPC_CODE_NAMES = [
  "OK",
  "Canceled",
  "Unknown",
  "InvalidArgument",
  "DeadlineExceeded",
  "NotFound",
  "AlreadyExists",
  "PermissionDenied",
  "ResourceExhausted",
  "FailedPrecondition",
  "Aborted",
  "OutOfRange",
  "Unimplemented",
  "Internal",
  "Unavailable",
  "DataLoss",
  "Unauthenticated",
] as const;

type RuntimeErrorCode = Exclude<(typeof GRPC_CODE_NAMES)[number], "OK">;

/** A failed call to the container runtime, in the kubelet's words. Never contains a command line or a URL. */
export class RuntimeError extends Error {
  override readonly name = "RuntimeError";
  readonly code: RuntimeErrorCode;
  /** The CRI method, for logs. */
  readonly method: string;
  /** The runtime's own message. */
  readonly details: string;

  constructor(method: string, code: number, details: string, options?: ErrorOptions) {
    const name = GRPC_CODE_NAMES[code];
    const known = name === undefined || name === "OK" ? "Unknown" : name;
    super(`rpc error: code = ${known} desc = ${details}`, options);
    this.code = known;
    this.method = method;
    this.details = details;
  }
}
