#!/bin/sh
# usage: tools/fuzz.sh DURATION
# Fuzzes every target of the module for the duration, one after the other.
set -eu

duration=$1

# Folders with a go.mod of their own are other modules; testdata holds no tests of ours.
targets=$(find . \( -name '.?*' -o -name testdata -o -path ./tools -o -path ./test/kube \) -prune -o -name '*_test.go' -print |
	sort | xargs grep -H -o '^func Fuzz[A-Za-z0-9_]*(' /dev/null) || true

[ -n "$targets" ] || {
	echo "fuzz: no target found: is this the root of the module?" >&2
	exit 1
}

output=$(mktemp)
trap 'rm -f "$output"' EXIT

# Until Go 1.27 the toolchain may take the end of the time for a failure (https://go.dev/issue/75804): nothing but "context deadline exceeded"
# below the target's name, and no input that failed.
ended_in_time() {
	grep -q '^    context deadline exceeded$' "$output" &&
		! grep -v '^    context deadline exceeded$' "$output" | grep -q '^    \|^panic\|Failing input\|DATA RACE'
}

for target in $(echo "$targets" | sed 's/func //; s/($//; s/: *Fuzz/:Fuzz/' | tr -d ' '); do
	file=${target%%:*}
	name=${target#*:}
	echo "fuzz: $(dirname "$file") $name"
	if go test -run '^$' -fuzz "^$name\$" -fuzztime "$duration" -fuzzminimizetime 20x "$(dirname "$file")" >"$output" 2>&1; then
		cat "$output"
	else
		cat "$output"
		ended_in_time || exit 1
		echo "fuzz: ./$(dirname "$file") $name: its time was up (go.dev/issue/75804): no input failed"
	fi
done
