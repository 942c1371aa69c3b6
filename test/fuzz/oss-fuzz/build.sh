#!/bin/bash -eu
# OSS-Fuzz runs this in its builder: each target goes into $OUT, with its corpus beside it.
npm ci --ignore-scripts
npm install --save-dev @jazzer.js/core
targets=$(mktemp)
node scripts/build-fuzz.mjs >"$targets"
while read -r file sync; do
  compile_javascript_fuzzer sluice "test/fuzz/built/$file" ${sync:+"$sync"}
  target=${file%.js}
  (cd "test/fuzz/built/${target}_seed_corpus" && zip -qr "$OUT/${target}_seed_corpus.zip" .)
done <"$targets"
