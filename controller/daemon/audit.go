package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"pitchpipe/controller/reconcile"
)

// auditLog is an append-only file of JSON lines, each on disk before the effect
// that it announces.
type auditLog struct {
	mu   sync.Mutex
	file *os.File
}

func openAudit(path string) (*auditLog, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the audit: %w", err)
	}
	return &auditLog{file: f}, nil
}

func (a *auditLog) append(_ context.Context, entry reconcile.Audit) error {
	line, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("encode the audit: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write the audit: %w", err)
	}
	if err := a.file.Sync(); err != nil {
		return fmt.Errorf("sync the audit: %w", err)
	}
	return nil
}

func (a *auditLog) close() error { return a.file.Close() }
