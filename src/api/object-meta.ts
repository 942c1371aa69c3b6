/**
 * A Kubernetes object with the fields that Sluice uses. Other fields stay in the object, and GET
 * returns them unchanged.
 */
export interface Extensible {
  readonly [field: string]: unknown;
}

export interface ObjectMeta extends Extensible {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  /** RFC 3339. */
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}
