package telemetry

import (
	"fmt"
	"io"
	"log/slog"
)

// redacted is what is shown of a secret.
const redacted = "[redacted]"

// Secret is a text that must not be shown: printed, logged or marshalled, in whatever way, it reads [redacted]. The one gap: as the key
// of a map encoding/json takes it for a plain text.
type Secret string

// Reveal returns the text, for the one place that needs it.
func (s Secret) Reveal() string { return string(s) }

// String returns no secret.
func (Secret) String() string { return redacted }

// Format writes no secret, whatever the verb: %x of a text would.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue returns no secret.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns no secret. JSON, YAML and XML go by it.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
