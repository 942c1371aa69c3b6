export { ByteQueue } from "./byte-queue.ts";
export { ABORT, type AbortCode } from "./frames.ts";
export {
  type Agreement,
  encodeAgreement,
  encodeOffer,
  encodeResumed,
  encodeResumption,
  type Offer,
  parseAgreement,
  parseRequest,
  parseResumed,
  proofTextOf,
  RESUME_HEADER,
  RESUME_PROTOCOL,
  type Resumption,
} from "./negotiation.ts";
export { ResumeSession, type ResumeSessionHandler } from "./session.ts";
