package daemon

import (
	"context"
	"fmt"
	"path/filepath"

	"pitchpipe/controller/reconcile"
	"pitchpipe/driver/durable"
)

// The audit takes at most this much of the disk, and five times that with the old files.
const (
	auditBytes = 64 << 20
	auditKeep  = 4
)

// auditLog is a file of JSON lines, each on disk before the effect that it announces.
type auditLog struct{ log durable.Log }

func openAudit(state string) (*auditLog, error) {
	a := &auditLog{durable.Log{Path: filepath.Join(state, "audit.jsonl"), Max: auditBytes, Keep: auditKeep}}
	if err := a.log.Open(); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return a, nil
}

func (a *auditLog) append(_ context.Context, entry reconcile.Audit) error {
	if err := a.log.Append(entry, true); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}
