/** The endpoint does not meet the requirement. The message names the observation and the expectation. */
export class Violation extends Error {
  override readonly name = "Violation";
}

/** The case cannot judge this endpoint. The message says why. */
export class SkippedCase extends Error {
  override readonly name = "SkippedCase";
}
