package main

import (
	"slices"
	"testing"

	"github.com/retinue-sched/retinue/hostabi"
)

// The settings that a scenario may set are those of the policy's manifest.
func TestSettingsOfShippedPolicies(t *testing.T) {
	for name, want := range map[string][]string{"direct": {"gate"}, "elastic": {"first", "growth_interval", "idle"}} {
		if got, err := shippedSettings(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s has %v (%v), want %v", name, got, err, want)
		}
	}
}

// A policy that describes no settings has none, and a description that makes no sense is an error.
func TestSettingNames(t *testing.T) {
	for text, want := range map[string]int{"": 0, "{}": 0, `{"properties":{"b":{},"a":{}}}`: 2} {
		if got, err := settingNames(hostabi.Manifest{Settings: []byte(text)}); err != nil || len(got) != want {
			t.Errorf("%q names %v (%v), want %d", text, got, err, want)
		}
	}
	if _, err := settingNames(hostabi.Manifest{Settings: []byte("[]")}); err == nil {
		t.Error("a list was taken for a description of settings")
	}
}
