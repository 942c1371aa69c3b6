#!/usr/bin/env node
require("./run-built.cjs")("kubectl-complete.cjs");
