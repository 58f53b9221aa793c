package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"pitchpipe/driver"
)

// Entry is one line of the audit file.
type Entry struct {
	Time    time.Time `json:"time"`
	Peer    uint32    `json:"peer"` // uid of who asked
	Verb    string    `json:"verb"`
	Job     string    `json:"job"`
	User    string    `json:"user,omitempty"` // whose job it is
	Before  *Size     `json:"before,omitempty"`
	After   *Size     `json:"after,omitempty"`
	Detail  string    `json:"detail,omitempty"`  // the signal, the start
	Allowed bool      `json:"allowed"`           // it is about to be done
	Refused string    `json:"refused,omitempty"` // why not
}

// Audit appends one line to the audit file, and syncs it where it tells of an effect.
// The file may be moved away at any time: the next line begins a new one.
func (l Ledger) Audit(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(l.dir), "audit.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("audit: %w: %w", driver.ErrTransient, err)
	}
	_, err = f.Write(append(line, '\n'))
	if err == nil && e.Allowed {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("audit: %w: %w", driver.ErrTransient, err)
	}
	return nil
}
