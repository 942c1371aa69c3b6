#!/usr/bin/env node
// Runs the program as it is built. The published package has the built program itself.
require("./run-built.cjs")("sluice.cjs");
