package policy

import (
	"strings"
	"testing"
)

// Everything that is wrong is named at once, by its key.
func TestValidateReportsEverything(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the default is refused: %v", err)
	}
	wrong := Config{MemoryLimit: 8<<20 - 1, OutputLimit: 1 << 30, Default: Binding{Policy: "direct", Settings: "[]"}}
	err := wrong.Validate()
	if err == nil {
		t.Fatal("a wrong configuration is accepted")
	}
	for _, key := range []string{"memoryLimit", "deadline", "startTimeout", "compileTimeout", "outputLimit", "moduleLimit", "modules", "default"} {
		if !strings.Contains(err.Error(), key+": ") {
			t.Errorf("%s is not named in: %v", key, err)
		}
	}
	odd := DefaultConfig()
	odd.MemoryLimit++
	if err := odd.Validate(); err == nil || !strings.Contains(err.Error(), "multiple of a page") {
		t.Errorf("error %v", err)
	}
}
