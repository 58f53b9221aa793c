package nomad

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

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

// A standby controller looks at jobs too. What it read of one before it began to
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

// A change of a job that waits is registered at once. One that its template restarts only
// seems to wait, and its owner may have written what it is restarted for.
func TestAJobIsQueuedUnlessItRunsOrBeginsAtOnce(t *testing.T) {
	t.Parallel()
	event := func(kind, code string) *api.TaskEvent {
		return &api.TaskEvent{Type: kind, Details: map[string]string{"exit_code": code}}
	}
	failed := []*api.TaskEvent{event(api.TaskStarted, ""), event(api.TaskTerminated, "1"), event(api.TaskRestarting, "")}
	restarted := []*api.TaskEvent{event(api.TaskStarted, ""), event(api.TaskRestartSignal, ""), event(api.TaskTerminated, "0"), event(api.TaskRestarting, "")}
	for name, tt := range map[string]struct {
		client, state string
		events        []*api.TaskEvent
		want          bool
	}{
		"it runs":                            {"running", "running", failed[:1], false},
		"it is over":                         {"complete", "dead", failed[:2], true},
		"its policy starts it after a delay": {"pending", "pending", failed, true},
		"its template restarts it":           {"pending", "pending", restarted, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &api.AllocationListStub{ClientStatus: tt.client, TaskStates: map[string]*api.TaskState{"main": {State: tt.state, Events: tt.events}}}
			f := &facts{task: "main", allocs: []*api.AllocationListStub{a}}
			if got := f.queued(); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestThatNomadIsAwayIsLoggedOnceForAllJobs(t *testing.T) {
	t.Parallel()
	away, err := api.NewClient(&api.Config{Address: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	d := &Driver{c: cluster{away, nil}, cfg: Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	e, id := &informer{d: d, lists: map[string]*listing{}, told: map[string]time.Time{}}, where{"train", "x"}.jobID()
	ctx, cancel := context.WithTimeout(t.Context(), 5*urgent)
	defer cancel()
	e.look(ctx, "train") // lists three times
	if n := strings.Count(log.String(), "\n"); n != 1 || !e.down(id) {
		t.Errorf("%d lines, down: %v\n%s", n, e.down(id), log.String())
	}
	if e.compare("train", &listing{}); e.down(id) {
		t.Error("it is down after a list")
	}
}
