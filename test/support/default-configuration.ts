import { defaultConfiguration } from "../../src/config/configuration.ts";

export const { edge: defaultEdge, limits: defaultLimits, timeouts: defaultTimeouts } = defaultConfiguration();
