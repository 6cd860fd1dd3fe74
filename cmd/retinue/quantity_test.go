package main

import (
	"strings"
	"testing"
)

// What no cluster can count is refused, whichever way it is written, and nothing else is.
func TestTooMuch(t *testing.T) {
	for text, want := range map[string]bool{
		"1e999": true, "1E30": true, "9223372036854775807": true, "-1e999": true, "9223372036854775807E": true, "16Ei": true, "8Ei": true, "10E": true, "99999999P": true,
		"1": false, "500m": false, "2.5": false, "4Gi": false, "7Ei": false, "9E": false, "1e18": false, "1e-999": false, "9000000000000000000": false,
		"100000000000u": false, "100n": false, "1k": false, "512Mi": false, "": false, "lots": false, "1.2.3": false, "1ee9": false,
	} {
		if got := tooMuch(text); got != want {
			t.Errorf("%q is too much: %t, want %t", text, got, want)
		}
	}
}

// The complaint names the file, the line and the field.
func TestManifestOfTooMuch(t *testing.T) {
	_, err := readManifest("app.yaml", []byte("id: a\nprofiles:\n  - memory: 1e999\n    cpu: 1e30\n    cpuLimit: 2\n"))
	if err == nil || !strings.HasPrefix(err.Error(), `app.yaml:3: profiles[0].memory: "1e999" is more than can be counted`) ||
		!strings.Contains(err.Error(), "app.yaml:4: profiles[0].cpu: ") || strings.Contains(err.Error(), "cpuLimit") {
		t.Errorf("got %v, want a complaint about the memory and the cpu", err)
	}
}
