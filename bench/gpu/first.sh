#!/usr/bin/env bash
# The first call to a lent GPU: what decides everything else (bench/gpu/plan.py). Without a model or a program of ours that works there, the probe's answers
# are still worth it. Fails if the device computes wrongly: then conversations are not worth measuring.
#   bench/gpu/first.sh [flags of measure.py]    DRY=1 and --dry as for run.sh
exec bash "$(dirname "${BASH_SOURCE[0]}")/run.sh" --parts probe,nano,model,stages "$@"
