/**
 * What is read of responses that another reader would understand otherwise. `none`: nothing. `folded-lines`: lines folded by obs-fold
 * are joined (RFC 9112 section 5.2). `as-go`: whatever Go's client reads, for verdicts that have to be the same as Go's.
 */
export type Leniency = "none" | "folded-lines" | "as-go";
