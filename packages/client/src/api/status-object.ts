/** metav1.Status, the Kubernetes API's one form for errors. */
export interface Status {
  readonly kind: "Status";
  readonly apiVersion: "v1";
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly status: "Failure" | "Success";
  readonly message?: string;
  /** Absent in errors that the API server passes on, such as a failed dial. */
  readonly reason?: string;
  readonly details?: StatusDetails;
  /** HTTP status code. */
  readonly code: number;
}

export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  /** The resource (`pods`) for most reasons, the kind (`Pod`) for Invalid. */
  readonly kind?: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}
