/**
 * The Kubernetes objects that Sluice reads, with the fields it uses. Fields it does not know stay in the object and are given
 * back by GET as they came.
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
