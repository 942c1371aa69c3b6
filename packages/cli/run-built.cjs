const { existsSync } = require("node:fs");
const path = require("node:path");

module.exports = (program) => {
  const file = path.join(__dirname, "../../dist/bin", program);
  if (existsSync(file)) require(file);
  else {
    console.error("sluice is not built here; this builds it: npm ci --include=dev --include=optional");
    process.exitCode = 1;
  }
};
