package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/retinue-sched/retinue/hostabi"
)

// settingsOf names the settings that a module's manifest describes. The module is known to be sound, and to have so many bytes unpacked.
func settingsOf(module []byte, size int) ([]string, error) {
	if bytes.HasPrefix(module, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(bytes.NewReader(module))
		if err != nil {
			return nil, fmt.Errorf("unpacking the policy: %w", err)
		}
		if module, err = io.ReadAll(io.LimitReader(unpacked, int64(size))); err != nil {
			return nil, fmt.Errorf("unpacking the policy: %w", err)
		}
	}
	manifest, err := hostabi.ReadManifest(module)
	if err != nil {
		return nil, err
	}
	return settingNames(manifest)
}

// settingNames names the settings that a manifest describes, sorted. A policy that describes none has none.
func settingNames(m hostabi.Manifest) ([]string, error) {
	if len(m.Settings) == 0 {
		return nil, nil
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(m.Settings, &schema); err != nil {
		return nil, fmt.Errorf("reading the settings in the policy's manifest: %w", err)
	}
	return slices.Sorted(maps.Keys(schema.Properties)), nil
}
