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

for target in $(echo "$targets" | sed 's/func //; s/($//; s/: *Fuzz/:Fuzz/' | tr -d ' '); do
	file=${target%%:*}
	name=${target#*:}
	echo "fuzz: $(dirname "$file") $name"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$duration" "$(dirname "$file")"
done
