package broker

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
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

// Of one user the audit has at most maxRefusals refusals in each refusalSpan, and how many
// more there were.
const (
	maxRefusals = 30
	refusalSpan = time.Minute
)

// audit is the file, and how often each user was refused of late.
type audit struct {
	log *durable.Log

	mu      sync.Mutex
	refused map[uint32]refusals
}

type refusals struct {
	since time.Time
	count int
}

// Audit appends one line to the audit file, and syncs it where it is about an effect. Of a
// user who is refused often it counts the refusals, and writes their number with the first
// entry a minute later. The file may be moved away at any time: the next line begins a new one.
func (l ledger) Audit(e Entry) error {
	l.audit.mu.Lock()
	defer l.audit.mu.Unlock()
	err := l.audit.sum(e.Time)
	if e.Allowed || l.audit.room(e) {
		err = errors.Join(err, l.audit.log.Append(e, e.Allowed))
	}
	if err != nil {
		return fmt.Errorf("audit: %w: %w", driver.ErrTransient, err)
	}
	return nil
}

// room counts a refusal and reports whether it is to be written.
func (a *audit) room(e Entry) bool {
	r, known := a.refused[e.Peer]
	if !known {
		r.since = e.Time
	}
	r.count++
	a.refused[e.Peer] = r
	return r.count <= maxRefusals
}

// sum ends the spans that are over and writes what was left out of them.
func (a *audit) sum(now time.Time) (err error) {
	for peer, r := range a.refused {
		if now.Sub(r.since) < refusalSpan {
			continue
		}
		delete(a.refused, peer)
		if more := r.count - maxRefusals; more > 0 {
			why := fmt.Sprintf("%d more requests of this user since %s", more, r.since.Format(time.RFC3339))
			err = errors.Join(err, a.log.Append(Entry{Time: now, Peer: peer, Verb: "refused", Refused: why}, false))
		}
	}
	return err
}
