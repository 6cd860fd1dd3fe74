#!/bin/sh
# usage: tools/generated.sh
# Generates the stubs of api/v1 aside and compares them with those in the tree.
set -eu

aside=$(mktemp -d)
trap 'rm -rf "$aside"' EXIT

go tool -modfile=tools/go.mod buf generate -o "$aside"
for stub in api/v1/*.pb.go "$aside"/api/v1/*.pb.go; do
	name=api/v1/$(basename "$stub")
	diff -u "$name" "$aside/$name" >&2 || {
		echo "generated: $name is not what driver.proto gives: run make generate" >&2
		exit 1
	}
done
