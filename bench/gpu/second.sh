#!/usr/bin/env bash
# The second call to a lent GPU, at once after the first, whose model folder is still there: conversations in real time, then the rest of parity.
#   bench/gpu/second.sh [flags of measure.py]   e.g. --sessions 96,128 --talk usual; DRY=1 and --dry as for run.sh
exec bash "$(dirname "${BASH_SOURCE[0]}")/run.sh" --parts sessions,parity "$@"
