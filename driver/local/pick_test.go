package local

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver"
	"pitchpipe/driver/local/supervise"
	"pitchpipe/driver/move"
)

// queueing is a driver of four cores with these jobs, oldest first.
func queueing(now time.Time, jobs ...*record) *Driver {
	d := &Driver{
		cfg: Config{Hold: time.Minute}, room: driver.Room{Cores: 4, Memory: 1000}, since: now,
		jobs: map[driver.JobID]*record{}, touched: map[driver.JobID]time.Time{},
	}
	for _, r := range jobs {
		d.jobs[r.Job.ID] = r
		d.order = append(d.order, r.Job.ID)
	}
	return d
}

func queued(id driver.JobID, attempt, cores int, limit time.Duration) *record {
	return &record{Job: driver.Job{
		ID: id, State: driver.Pending, Attempt: attempt, Resources: driver.Resources{Cores: cores, TimeLimit: limit},
	}}
}

func TestAJobBetweenTwoAttemptsKeepsItsRoom(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	stopped := func(had, will driver.Change, limit time.Duration) *record {
		r := queued("moving", 1, 1, limit)
		r.Job.State, r.Job.Change = driver.Stopped, had
		r.Moving = &move.Moving{Phase: move.Ending, Left: now, Intent: driver.Intent{ID: "intent", Change: will}}
		return r
	}
	for _, tt := range []struct {
		name string
		jobs []*record
		want []driver.JobID
	}{
		{
			"what it will have", []*record{stopped(driver.Change{}, driver.Change{Cores: 3}, 0), queued("behind", 0, 2, 0)}, nil,
		},
		{
			"what it had", []*record{stopped(driver.Change{Cores: 3}, driver.Change{}, 0), queued("behind", 0, 2, 0)}, nil,
		},
		{
			"but no more",
			[]*record{stopped(driver.Change{Cores: 3}, driver.Change{}, 0), queued("behind", 0, 1, 0)},
			[]driver.JobID{"behind"},
		},
		{
			"and its memory", []*record{
				stopped(driver.Change{}, driver.Change{MemoryBytes: 900}, 0),
				{Job: driver.Job{ID: "behind", State: driver.Pending, Resources: driver.Resources{Cores: 1, MemoryBytes: 200}}},
			}, nil,
		},
		{
			"and is believed to end after Hold and its own time",
			[]*record{
				stopped(driver.Change{}, driver.Change{Cores: 3}, time.Hour),
				queued("head", 0, 4, 0), queued("short", 0, 1, time.Hour+time.Minute), queued("long", 0, 1, time.Hour+2*time.Minute),
			},
			[]driver.JobID{"short"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tt.want, queueing(now, tt.jobs...).pick(now)); d != "" {
				t.Errorf("started (-want +got):\n%s", d)
			}
		})
	}
}

func TestWhatARunningJobIsToHaveIsNoOtherJobs(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	running := func(id driver.JobID) *record {
		r := queued(id, 1, 1, 0)
		r.Job.State = driver.Running
		return r
	}
	moved, other, again := running("moved"), running("other"), queued("again", 2, 1, 0)
	d := queueing(now, moved, other, queued("behind", 0, 1, 0))
	if err := d.grow(moved, driver.Change{Cores: 3}); err != nil {
		t.Errorf("three cores of four, of which another has one: %v", err)
	}
	if err := d.grow(moved, driver.Change{Cores: 4}); !errors.Is(err, driver.ErrNoRoom) {
		t.Errorf("all four: %v, want %v", err, driver.ErrNoRoom)
	}
	moved.Moving = &move.Moving{Phase: move.Asking, Intent: driver.Intent{ID: "intent", Change: driver.Change{Cores: 3}}}
	if err := d.grow(other, driver.Change{Cores: 2}); !errors.Is(err, driver.ErrNoRoom) {
		t.Errorf("a core that another is to have: %v, want %v", err, driver.ErrNoRoom)
	}
	if got := d.pick(now); len(got) > 0 {
		t.Errorf("started %v, want none in the core that a job is to have", got)
	}
	moved.Moving = nil
	d.jobs["again"] = again
	again.Next.Change.Cores = 2
	if err := d.grow(other, driver.Change{Cores: 2}); !errors.Is(err, driver.ErrNoRoom) {
		t.Errorf("cores of one that ran before: %v, want %v", err, driver.ErrNoRoom)
	}
	again.Next.Change.Cores = 5 // which this machine never has
	if err := d.grow(other, driver.Change{Cores: 2}); err != nil {
		t.Errorf("where one waits for a larger machine: %v", err)
	}
}

func TestAJobThatRanBeforeIsFirstInTheQueue(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	d := queueing(now, queued("older", 0, 3, 0), queued("again", 2, 3, 0))
	if d := cmp.Diff([]driver.JobID{"again"}, d.pick(now)); d != "" {
		t.Errorf("started (-want +got):\n%s", d)
	}
}

func TestAJobThatTheMachineCannotHoldHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	d := queueing(now, queued("large", 0, 5, 0), queued("small", 0, 4, 0))
	if d := cmp.Diff([]driver.JobID{"small"}, d.pick(now)); d != "" {
		t.Errorf("started (-want +got):\n%s", d)
	}
}

func TestAJobWithoutAMemoryLimitDoesNotMindThatMemoryIsShort(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	got := schedule(now, driver.Room{Cores: 1, Memory: -10}, []waiting{{ID: "job", Want: driver.Room{Cores: 1, Memory: 0}}}, nil)
	if d := cmp.Diff([]driver.JobID{"job"}, got); d != "" {
		t.Errorf("started (-want +got):\n%s", d)
	}
}

func TestAfterAKillForMemory(t *testing.T) {
	t.Parallel()
	d := &Driver{failures: map[driver.JobID]failures{}}
	threads := map[string]string{"OMP_NUM_THREADS": "4"}
	for _, tt := range []struct {
		name   string
		change driver.Change
		cause  driver.Cause
		want   driver.State
		next   driver.Change
	}{
		{
			"a tuned limit goes first, alone",
			driver.Change{MemoryBytes: 10, Cores: 2},
			driver.CauseIntent, driver.Pending,
			driver.Change{Cores: 2},
		},
		{"then everything", driver.Change{Cores: 2}, driver.CauseMemory, driver.Pending, driver.Change{}},
		{"a live setting goes at once", driver.Change{Live: threads}, driver.CauseIntent, driver.Pending, driver.Change{}},
		{"other settings go at once", driver.Change{Env: threads}, driver.CauseIntent, driver.Pending, driver.Change{}},
		{
			"a limit above the owner's goes with everything",
			driver.Change{MemoryBytes: 2000, Env: threads},
			driver.CauseIntent, driver.Pending,
			driver.Change{},
		},
		{"the owner's own settings end the job", driver.Change{}, driver.CauseMemory, driver.MemoryExceeded, driver.Change{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := queued("job", 2, 1, 0)
			r.Job.Resources.MemoryBytes, r.Job.State, r.Job.Change = 1000, driver.Running, tt.change
			r.Job.Attempts = []driver.Attempt{{Number: 1}, {Number: 2, Change: tt.change, Cause: tt.cause, Intent: "intent"}}
			d.settle(r, supervise.Exit{Reason: supervise.Memory, Code: 137, Ended: time.Unix(1_000_000, 0)})
			if r.Job.State != tt.want {
				t.Fatalf("the job is %s (%s), want %s", r.Job.State, r.Job.Detail, tt.want)
			}
			if tt.want != driver.Pending {
				return
			}
			if d := cmp.Diff(tt.next, r.Next.Change); d != "" || r.Next.Cause != driver.CauseMemory || r.Job.Attempt != 3 {
				t.Errorf("attempt %d with cause %s, change (-want +got):\n%s", r.Job.Attempt, r.Next.Cause, d)
			}
			if r.Next.Intent != "" {
				t.Errorf("the next attempt is said to be of intent %q, of which it lacks a part", r.Next.Intent)
			}
		})
	}
}

func TestAJobThatIsTooLargeForTheMachineSaysWhatToDo(t *testing.T) {
	t.Parallel()
	d := Driver{room: driver.Room{Cores: 2, Memory: 1 << 30}}
	for _, c := range []struct {
		want driver.Room
		text string
	}{
		{driver.Room{Cores: 2, Memory: 1 << 30}, ""},
		{driver.Room{Cores: 16}, "invalid job: it asks for 16 cores, and this machine has 2 for jobs; ask for fewer"},
		{driver.Room{Cores: 1, Memory: 64 << 30}, "invalid job: it asks for 65536 MiB of memory, and this machine has 1024 MiB for jobs; ask for less"},
	} {
		if err := d.Fits(c.want); (err != nil || c.text != "") && fmt.Sprint(err) != c.text {
			t.Errorf("%+v: %v, want %q", c.want, err, c.text)
		}
	}
}

func TestTheDelayBetweenFailuresIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	d := &Driver{failures: map[driver.JobID]failures{}}
	last := time.Duration(0)
	for i := range 100 {
		wait := d.later("job", now).again.Sub(now)
		if wait < last || wait > time.Minute {
			t.Fatalf("failure %d waits %v after %v", i+1, wait, last)
		}
		last = wait
	}
	if last < 10*time.Second {
		t.Errorf("the longest delay is %v", last)
	}
}

func TestWhatGoesOnFailingIsLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	d := &Driver{cfg: Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, told: map[driver.JobID]time.Time{}}
	now := time.Unix(1_000_000, 0)
	for range int(time.Minute/lookEvery) + 1 {
		d.check("job", errClosed, now)
		now = now.Add(lookEvery)
	}
	if n := strings.Count(log.String(), "job is not handled"); n != 2 {
		t.Errorf("%d lines in a minute, want one at each end", n)
	}
	d.check("another", errClosed, now)
	if !strings.Contains(log.String(), "another") {
		t.Error("another job's error is not logged")
	}
}
