/** metav1.Status: the one shape in which the Kubernetes API says that something went wrong. */
export interface Status {
  readonly kind: "Status";
  readonly apiVersion: "v1";
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly status: "Failure" | "Success";
  readonly message?: string;
  /** Absent for errors that the API server did not make itself, such as a failed dial. */
  readonly reason?: string;
  readonly details?: StatusDetails;
  /** HTTP status code. */
  readonly code: number;
}

export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  /** For most reasons the resource (`pods`), for Invalid the kind (`Pod`). */
  readonly kind?: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}
