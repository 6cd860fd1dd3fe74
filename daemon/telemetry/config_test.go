package telemetry_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/retinue-sched/retinue/daemon/telemetry"
)

// Everything that is wrong is named at once, by its key.
func TestValidateReportsEverything(t *testing.T) {
	if err := telemetry.DefaultConfig().Validate(); err != nil {
		t.Errorf("the default is refused: %v", err)
	}
	wrong := telemetry.Config{LogLevel: "loud", LogFormat: "xml", Address: "9464", TraceEndpoint: "collector", TraceRatio: math.NaN()}
	err := wrong.Validate()
	if err == nil {
		t.Fatal("a wrong configuration is accepted")
	}
	for _, key := range []string{"logLevel", "logFormat", "address", "traceEndpoint", "traceRatio"} {
		if !strings.Contains(err.Error(), key+": ") {
			t.Errorf("%s is not named in: %v", key, err)
		}
	}
}

// Others are let in only on purpose.
func TestAddressIsLocalUnlessAllowed(t *testing.T) {
	for address, local := range map[string]bool{
		"127.0.0.1:9464": true, "localhost:0": true, "[::1]:1": true, "127.8.8.8:1": true, "": true,
		":9464": false, "0.0.0.0:9464": false, "[::]:9464": false, "10.0.0.7:1": false, "example.com:80": false,
	} {
		cfg := telemetry.DefaultConfig()
		cfg.Address = address
		if err := cfg.Validate(); (err == nil) != local {
			t.Errorf("%q: %v, want it accepted: %v", address, err, local)
		}
		cfg.AllowRemote = true
		if err := cfg.Validate(); err != nil {
			t.Errorf("%q with allowRemote: %v", address, err)
		}
	}
}

// The level changes while the log is in use, and no text fills the disk.
func TestLog(t *testing.T) {
	var out bytes.Buffer
	level := new(slog.LevelVar)
	handler, err := telemetry.NewHandler(&out, "json", level)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(handler)
	log.LogAttrs(t.Context(), slog.LevelDebug, "early")
	level.Set(slog.LevelDebug)
	log.LogAttrs(t.Context(), slog.LevelDebug, "late", slog.String("text", strings.Repeat("é", 1<<20)))
	var record struct{ Msg, Text string }
	if err := json.Unmarshal(out.Bytes(), &record); err != nil {
		t.Fatalf("%v in %.200s", err, out.String())
	}
	if record.Msg != "late" || len(record.Text) > 9<<10 || !strings.HasSuffix(record.Text, "é…") {
		t.Errorf("logged %q with %d bytes of text", record.Msg, len(record.Text))
	}
	if _, err := telemetry.NewHandler(&out, "xml", level); err == nil {
		t.Error("an unknown format is accepted")
	}
}
