#!/bin/sh
# usage: tools/check.sh TARGET...
# Makes each target, says how many minutes it took, and goes on to the next one even if it failed, so that one run shows all that is wrong.
set -eu

minutes() {
	awk -v seconds="$1" 'BEGIN { printf "%.1f", seconds / 60 }'
}

failed=
began=$(date +%s)
for target in "$@"; do
	echo "check: $target"
	start=$(date +%s)
	verdict=ok
	"${MAKE:-make}" --no-print-directory "$target" || verdict=FAILED
	[ "$verdict" = ok ] || failed="$failed $target"
	echo "check: $target $verdict minutes=$(minutes $(($(date +%s) - start)))"
done

total=$(minutes $(($(date +%s) - began)))
if [ -n "$failed" ]; then
	echo "check: FAILED minutes=$total:$failed (make one of them alone to see it again)" >&2
	exit 1
fi
echo "check: ok minutes=$total"
