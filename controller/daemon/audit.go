package daemon

import (
	"context"
	"fmt"

	"pitchpipe/controller/reconcile"
	"pitchpipe/driver/durable"
)

// auditLog is a file of JSON lines, each on disk before the effect that it announces.
type auditLog struct{ log *durable.Log }

func (a auditLog) append(_ context.Context, entry reconcile.Audit) error {
	if err := a.log.Append(entry, true); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}
