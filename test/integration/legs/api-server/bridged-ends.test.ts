import { afterEach, describe } from "vitest";
import { testEnds, testFailures } from "../../../support/session-end-tests.ts";
import { BRIDGES, closeEnds, HTTP2_PATHS } from "../../../support/session-ends.ts";

afterEach(closeEnds);

describe.each([...BRIDGES, ...HTTP2_PATHS])("the end of $name", testEnds);

/** A bridged port-forward ends with RST_STREAM and GOAWAY instead: bridge-port-forward.test.ts. */
const TOLD = [...BRIDGES, ...HTTP2_PATHS].filter(
  ({ plan, subresource }) => plan !== "bridge" || subresource !== "portforward",
);

describe.each(TOLD)("the client of $name", testFailures);
