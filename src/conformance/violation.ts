/** The endpoint does not fulfil the requirement. The message says what was observed, and what was expected. */
export class Violation extends Error {
  override readonly name = "Violation";
}

/** The case cannot judge this endpoint. The message says why. */
export class SkippedCase extends Error {
  override readonly name = "SkippedCase";
}
