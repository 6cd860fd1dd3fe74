package kube

import (
	"context"
	"log/slog"
	"sync"
)

// maxWarnings is how many different texts are remembered. One sloppy template gives one text; a server with more than these has other troubles.
const maxWarnings = 64

// warnings logs each warning of the server once. By default client-go logs all: one odd quantity in a template gave 12,600 lines a minute.
type warnings struct {
	log  *slog.Logger
	mu   sync.Mutex
	seen map[string]struct{}
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _ string, text string) {
	if code != 299 || text == "" || !w.first(text) { // 299: the only code that Kubernetes gives a meaning
		return
	}
	w.log.LogAttrs(ctx, slog.LevelWarn, "the cluster warns", slog.String("text", text))
}

func (w *warnings) first(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.seen[text]; ok || len(w.seen) >= maxWarnings {
		return false
	}
	if w.seen == nil {
		w.seen = map[string]struct{}{}
	}
	w.seen[text] = struct{}{}
	return true
}
