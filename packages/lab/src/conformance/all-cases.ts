import { attachCases } from "./cases/attach-cases.ts";
import { closingCases } from "./cases/closing-cases.ts";
import { copyCases } from "./cases/copy-cases.ts";
import { costCases } from "./cases/cost-cases.ts";
import { errorCases } from "./cases/error-cases.ts";
import { execCases } from "./cases/exec-cases.ts";
import { framingCases } from "./cases/framing-cases.ts";
import { headerCases } from "./cases/header-cases.ts";
import { http2Cases } from "./cases/http2-cases.ts";
import { heartbeatCases, idleCases } from "./cases/idle-cases.ts";
import { legacyCases } from "./cases/legacy-cases.ts";
import { negotiationCases } from "./cases/negotiation-cases.ts";
import { portForwardCases } from "./cases/port-forward-cases.ts";
import { abruptEndCases, sessionCases } from "./cases/session-cases.ts";
import { backpressureCases, slowReaderCases } from "./cases/slow-reader-cases.ts";
import { terminalCases } from "./cases/terminal-cases.ts";
import { CASE_GROUPS, type ConformanceCase } from "./conformance-case.ts";

/** Every case, by group in the order of CASE_GROUPS. */
export const ALL_CASES: readonly ConformanceCase[] = [
  ...negotiationCases,
  ...headerCases,
  ...errorCases,
  ...execCases,
  ...terminalCases,
  ...attachCases,
  ...copyCases,
  ...portForwardCases,
  ...legacyCases,
  ...framingCases,
  ...closingCases,
  ...slowReaderCases,
  ...backpressureCases,
  ...abruptEndCases,
  ...sessionCases,
  ...http2Cases,
  ...heartbeatCases,
  ...idleCases,
  ...costCases,
].toSorted((one, other) => CASE_GROUPS.indexOf(one.group) - CASE_GROUPS.indexOf(other.group));
