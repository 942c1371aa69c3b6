// Writes dist/bin, the programs of package.json. Of packages it includes yaml, which every client command loads and which comes in 70 files; npm
// installs the others.
import { writeFileSync } from "node:fs";
import path from "node:path";
import { licencesOf, root, writeBundle } from "./bundle.mjs";

const folder = path.join(root, "dist/bin");
const packages = await writeBundle(folder, (name) => name === "yaml");
writeFileSync(path.join(folder, "LICENSES"), licencesOf(packages));
