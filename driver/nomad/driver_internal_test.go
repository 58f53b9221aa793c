package nomad

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"pitchpipe/driver"
)

// shelf is a journal of one record, which notes whether it was read while it was held.
type shelf struct {
	Journal
	name   string
	record []byte
	listed chan struct{}
	held   atomic.Bool
	early  bool
}

func (s *shelf) List(context.Context) ([]string, error) {
	close(s.listed)
	return []string{s.name}, nil
}

func (s *shelf) Load(context.Context, string) ([]byte, error) {
	s.early = s.early || s.held.Load()
	return s.record, nil
}

// A controller that stands by looks at jobs too. What it read of one before it began to
// lead must not be saved over what the one before wrote in its last moment.
func TestANewLeaderReadsARecordWhenNoOneHasAnOlderOneInHand(t *testing.T) {
	t.Parallel()
	const id = driver.JobID("train@default")
	data, err := json.Marshal(record{Version: recordVersion, Job: id, Request: "known"})
	if err != nil {
		t.Fatal(err)
	}
	s := &shelf{name: recordName(id), record: data, listed: make(chan struct{})}
	d := &Driver{
		cfg: Config{Journal: s, Logger: slog.New(slog.DiscardHandler)}, jobs: map[driver.JobID]*cached{},
	}
	release := d.hold(id)
	s.held.Store(true)
	done := make(chan error, 1)
	go func() { done <- d.recall(t.Context()) }()
	<-s.listed
	time.Sleep(50 * time.Millisecond) // for one that does not wait to be early
	s.held.Store(false)
	release()
	if err := <-done; err != nil || s.early || d.peek(id).record == nil || d.peek(id).record.request != "known" {
		t.Errorf("recall: %v, read while somebody had an older one in hand: %v, known: %+v", err, s.early, d.peek(id).record)
	}
}
