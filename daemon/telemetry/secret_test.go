package telemetry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/retinue-sched/retinue/daemon/telemetry"
)

// However a secret is shown, it is not.
func TestSecretIsNotShown(t *testing.T) {
	const canary = "hunter2"
	secret := telemetry.Secret(canary)
	config := struct {
		Token telemetry.Secret
		Ptr   *telemetry.Secret
	}{secret, &secret}
	var shown bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s"} {
		fmt.Fprintf(&shown, verb+"\n", secret)
		fmt.Fprintf(&shown, verb+"\n", config.Token)
	}
	fmt.Fprintf(&shown, "%v %+v\n", config, config)
	fmt.Fprintln(&shown, fmt.Errorf("with %v", secret), secret.String())
	asJSON, err := json.Marshal([]any{secret, &secret, config})
	if err != nil {
		t.Fatal(err)
	}
	shown.Write(asJSON)
	for _, format := range []string{"json", "text"} {
		handler, err := telemetry.NewHandler(&shown, format, slog.LevelDebug)
		if err != nil {
			t.Fatal(err)
		}
		slog.New(handler).LogAttrs(t.Context(), slog.LevelInfo, "shown", slog.Any("secret", secret), slog.Any("in", config),
			slog.Group("group", slog.Any("secret", &secret)))
	}
	text := shown.String()
	if strings.Contains(text, canary) || strings.Contains(strings.ToLower(text), fmt.Sprintf("%x", canary)) {
		t.Errorf("a secret got out:\n%s", text)
	}
	if secret.Reveal() != canary {
		t.Errorf("Reveal gives %q", secret.Reveal())
	}
}
