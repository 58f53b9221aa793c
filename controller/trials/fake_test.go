package trials_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/searcher/searchertest"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// cluster runs jobs whose epochs take a second each. The quality rises with the epochs towards the value of the
// knob x. A folder keeps the last epoch of a trial, as a checkpoint does.
type cluster struct {
	mu          sync.Mutex
	jobs        map[driver.RequestID]*job
	checkpoints map[string]int // last epoch, by folder
	starts      int
	again       int                                             // times that a job was ended once more
	most        int                                             // jobs that ran at one time
	end         func(trial, attempt, epoch int) searcher.End    // of a job after an epoch; empty: it runs on
	value       func(x float64, epoch int) (v float64, ok bool) // not ok: diverged
	epochs      int
	limit       time.Duration // of a job; 0: none
	ending      time.Duration // how long a job takes to end once that is asked for
}

type job struct {
	id      driver.JobID
	spec    driver.Spec
	trial   int
	attempt int
	from    int // epochs before it
	began   time.Time
	stopped time.Time
}

func newCluster(epochs int) *cluster {
	return &cluster{
		jobs: map[driver.RequestID]*job{}, checkpoints: map[string]int{}, epochs: epochs,
		end:   func(int, int, int) searcher.End { return "" },
		value: func(x float64, epoch int) (float64, bool) { return x * (1 - math.Exp(-float64(epoch)/5)), true },
	}
}

// view is the state of a job by now.
func (c *cluster) view(j *job, now time.Time) trials.View {
	x, _ := strconv.ParseFloat(j.spec.Env["X"], 64)
	v := trials.View{Total: c.epochs, Started: j.began, Own: tuning.Settings{tuning.Cores: tuning.Number(2)}}
	if c.limit > 0 {
		v.Limit = j.began.Add(c.limit)
	}
	for n := j.from + 1; n <= c.epochs; n++ {
		at := j.began.Add(time.Duration(n-j.from) * time.Second)
		if !j.stopped.IsZero() && at.After(j.stopped) {
			if now.Sub(j.stopped) >= c.ending {
				v.Over, v.End = true, searcher.Cancelled
			}
			return v
		}
		if c.limit > 0 && at.Sub(j.began) > c.limit && now.Sub(j.began) >= c.limit {
			v.Over, v.End, v.Detail = true, searcher.NoTime, "time limit"
			return v
		}
		if at.After(now) {
			return v
		}
		e := tuning.Epoch{Number: n, Start: at.Add(-time.Second), End: at, Joules: new(tuning.Joules(10)), Source: "rapl", Settings: v.Own}
		q, ok := c.value(x, n)
		e.Quality, e.Diverged = &q, !ok // its loss, where its quality is finite
		v.Epochs = append(v.Epochs, e)
		if how := c.end(j.trial, j.attempt, n); how != "" {
			v.Over, v.End, v.Detail = true, how, "as the test has it"
			return v
		}
	}
	v.Over, v.End = true, searcher.Succeeded
	return v
}

func (c *cluster) Start(_ context.Context, x trials.Search, id driver.RequestID, spec driver.Spec) (driver.JobID, error) {
	if spec.Namespace != x.Job.Namespace {
		return "", fmt.Errorf("a trial in the namespace %q of a search in %q", spec.Namespace, x.Job.Namespace)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.jobs[id]; j != nil {
		return j.id, nil
	}
	c.starts++
	j := &job{id: driver.JobID(fmt.Sprintf("j%d", c.starts)), spec: spec, began: time.Now(), from: c.checkpoints[spec.Env["PITCHPIPE_TRIAL_DIR"]]}
	j.trial, _ = strconv.Atoi(spec.Env["PITCHPIPE_TRIAL"])
	j.attempt = 1
	for _, other := range c.jobs {
		if other.trial == j.trial {
			j.attempt++
		}
	}
	c.jobs[id] = j
	running := 0
	for _, other := range c.jobs {
		if !c.view(other, time.Now()).Over {
			running++
		}
	}
	c.most = max(c.most, running)
	return j.id, nil
}

func (c *cluster) byID(id driver.JobID) *job {
	for _, j := range c.jobs {
		if j.id == id {
			return j
		}
	}
	return nil
}

func (c *cluster) Stop(_ context.Context, id driver.JobID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.byID(id)
	if !j.stopped.IsZero() {
		c.again++
	} else {
		j.stopped = time.Now()
		done := c.view(j, time.Now())
		c.checkpoints[j.spec.Env["PITCHPIPE_TRIAL_DIR"]] = j.from + len(done.Epochs)
	}
	return nil
}

func (c *cluster) See(_ context.Context, id driver.JobID) (trials.View, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.view(c.byID(id), time.Now()), nil
}

func (c *cluster) Find(_ context.Context, id driver.RequestID) (driver.JobID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.jobs[id]; j != nil {
		return j.id, nil
	}
	return "", driver.ErrNotFound
}

// memory is a store that can refuse.
type memory struct {
	mu     sync.Mutex
	heads  map[string]trials.Search
	trials map[string]map[int]trials.Trial
}

func newMemory() *memory {
	return &memory{heads: map[string]trials.Search{}, trials: map[string]map[int]trials.Trial{}}
}

func (m *memory) All(context.Context) ([]trials.State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []trials.State
	for id, x := range m.heads {
		s := trials.State{Search: x}
		for _, n := range slices.Sorted(maps.Keys(m.trials[id])) {
			t := m.trials[id][n]
			t.Reports, t.Jobs = slices.Clone(t.Reports), slices.Clone(t.Jobs)
			s.Trials = append(s.Trials, t)
		}
		out = append(out, s)
	}
	return out, nil
}

func (m *memory) Save(_ context.Context, x trials.Search, _ bool, changed []trials.Trial) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heads[x.ID] = x
	if m.trials[x.ID] == nil {
		m.trials[x.ID] = map[int]trials.Trial{}
	}
	for _, t := range changed {
		t.Reports, t.Jobs = slices.Clone(t.Reports), slices.Clone(t.Jobs)
		m.trials[x.ID][t.Number] = t
	}
	return nil
}

func (m *memory) Delete(_ context.Context, x trials.State) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.heads, x.ID)
	delete(m.trials, x.ID)
	return nil
}

// policy is a search for the largest x.
func policy(change ...func(*tuning.Policy)) tuning.Policy {
	p := tuning.DefaultPolicy()
	search := tuning.DefaultSearch()
	search.Trials, search.Parallel, search.Epochs, search.Seed = 9, 3, 9, 7
	p.Search = &search
	p.Knobs = []tuning.Knob{{Name: "x", Env: "X", Min: tuning.Number(0), Max: tuning.Number(1), Scale: tuning.Linear}}
	p.Quality = &tuning.Quality{Direction: "max"}
	p.Checkpoint = &tuning.Checkpoint{Signal: "SIGUSR1"}
	p.Progress = tuning.Progress{Pattern: "x", Total: search.Epochs}
	for _, c := range change {
		c(&p)
	}
	return p
}

func begin(t *testing.T, s *trials.Service, p tuning.Policy) trials.State {
	t.Helper()
	plan, err := searcher.PlanOf(p)
	if err != nil {
		t.Fatal(err)
	}
	x, err := s.Begin(t.Context(), trials.Search{ID: "s1", Name: "train", Owner: "alice", UID: uint32(os.Geteuid()), Created: time.Now(), Policy: p, Plan: plan, Job: trials.JobFile{Dir: t.TempDir(), Namespace: "team"}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// play runs a search to its end, in a bubble of time.
func play(t *testing.T, c trials.Jobs, p tuning.Policy) (out trials.State) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := trials.New(trials.Config{Jobs: c, Store: newMemory(), Log: slog.New(slog.DiscardHandler)})
		begin(t, s, p)
		out = run(t, s)
	})
	return out
}

var errSlow = errors.New("the search did not end")

// run lets a service work until its search is over.
func run(t *testing.T, s *trials.Service) trials.State {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var out trials.State
	err := errSlow
	for range 4000 {
		time.Sleep(250 * time.Millisecond)
		x, got := s.Get("s1")
		if got == nil && x.Over {
			time.Sleep(time.Second)
			out, _ = s.Get("s1")
			err = nil
			break
		}
	}
	cancel()
	if ended := <-done; !errors.Is(ended, context.Canceled) {
		t.Error(ended)
	}
	if err != nil {
		x, _ := s.Get("s1")
		t.Fatalf("%v: %+v", err, x.Trials)
	}
	replays(t, out)
	return out
}

// replays fails the test unless the logged events lead to the same trials, and each trial that was to get a job got
// one for each time.
func replays(t *testing.T, x trials.State) {
	t.Helper()
	actions, err := searchertest.Replay(x.Plan, x.Searcher().Snapshot)
	if err != nil {
		t.Error(err)
	}
	jobs := map[int]int{}
	for _, a := range actions {
		if a.Kind == searcher.Create || a.Kind == searcher.Resume {
			jobs[a.Trial]++
		}
	}
	for _, tr := range x.Trials {
		if jobs[tr.Number] != tr.Attempt || len(tr.Jobs) > tr.Attempt {
			t.Errorf("trial %d: %d jobs for %d attempts, and %d were decided on", tr.Number, len(tr.Jobs), tr.Attempt, jobs[tr.Number])
		}
	}
}

func states(x trials.State) map[searcher.State]int {
	out := map[searcher.State]int{}
	for _, t := range x.Trials {
		out[t.State]++
	}
	return out
}

func best(x trials.State) *searcher.Trial { return append(x.Searcher().Ranking(), nil)[0] }
