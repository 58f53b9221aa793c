package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/slurmctl"
	"pitchpipe/exporter/api"
)

// hand is a broker that writes down what it was asked for, and does it.
type hand struct {
	slurmctl.Actor
	mu   sync.Mutex
	done []string
}

func (h *hand) note(verb string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = append(h.done, verb)
}

func (h *hand) Signal(ctx context.Context, job, signal string) error {
	h.note("signal " + signal)
	return h.Actor.Signal(ctx, job, signal)
}

func (h *hand) Do(ctx context.Context, v slurmctl.Verb, job string) error {
	if v == slurmctl.Requeue || v == slurmctl.Discard {
		h.note(string(v))
	}
	return h.Actor.Do(ctx, v, job)
}

func (h *hand) Update(ctx context.Context, job string, u slurmctl.Update) error {
	h.note("update")
	return h.Actor.Update(ctx, job, u)
}

// newSite is a driver of a site, on the fake of a Slurm whose one job is another
// user's.
func newSite(t *testing.T, change func(*slurm.Config)) (*rig, *hand) {
	t.Helper()
	h := &hand{}
	r := newRig(t, func(c *slurm.Config) {
		h.Actor = slurmctl.Commands{Runner: c.Commands}
		c.Everyone, c.Actor, c.User = true, h, "controller"
		if change != nil {
			change(c)
		}
	})
	r.f.user = "alice"
	r.f.jobs[1] = &fakeJob{
		id: 1, state: "RUNNING", name: "train", script: []byte("#!/bin/sh\n#TUNE mode=apply\ntrue\n"), cores: 1, mem: 100,
		admin: "pitchpipe:1:-", submitted: time.Now().UTC().Truncate(time.Second), started: time.Now().UTC().Truncate(time.Second),
	}
	return r, h
}

func TestASitesDriverSeesTheJobsOfOthersAndActsThroughItsBroker(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) // by the clock of the node, which may differ
	saves := api.Saves{Count: 3, Last: now, Now: now}  // that it had told of before
	r, h := newSite(t, func(c *slurm.Config) {
		c.Saves = func(_ context.Context, _ string, job driver.JobID, attempt int) (api.Saves, error) {
			if job != "1" || attempt != 1 {
				t.Errorf("asked about attempt %d of job %s", attempt, job)
			}
			return saves, nil
		}
	})
	jobs, err := r.d.List(t.Context())
	if err != nil || len(jobs) != 1 || jobs[0].Owner != "alice" {
		t.Fatalf("jobs %+v, %v; want alice's", jobs, err)
	}
	in := intent(r.job(t, "1"), &driver.Checkpoint{Signal: "USR1", Grace: time.Hour, Done: "saved"})
	in.Change = driver.Change{Cores: 2}
	step := func(want driver.StepKind) {
		t.Helper()
		got, err := r.d.Advance(t.Context(), in)
		if err != nil || got.Kind != want {
			t.Fatalf("Advance: %+v, %v; want %s", got, err, want)
		}
	}
	step(driver.StepCheckpointing) // asked
	step(driver.StepCheckpointing) // and nothing was said since
	if r.f.count("scontrol requeue") != 0 {
		t.Fatal("requeued before it said that it saved")
	}
	for name, said := range map[string]api.Saves{
		"a save that was told late":              {Count: 4, Last: now.Add(-time.Millisecond), Now: now.Add(time.Minute)},
		"no save, by a clock that was set ahead": {Count: 3, Last: now.Add(time.Hour), Now: now.Add(time.Hour)},
	} {
		saves = said
		step(driver.StepCheckpointing)
		if r.f.count("scontrol requeue") != 0 {
			t.Fatalf("requeued after %s", name)
		}
	}
	saves = api.Saves{Count: 5, Last: now.Add(time.Second), Now: now.Add(2 * time.Second)}
	step(driver.StepCheckpointing)
	step(driver.StepStopped)
	step(driver.StepChanged)
	step(driver.StepStarted)
	r.f.run("1")
	in = intent(r.job(t, "1"), in.Checkpoint)
	in.ID, in.Discard = "back", true
	step(driver.StepCheckpointing) // with nothing but a word to the broker
	step(driver.StepStopped)
	step(driver.StepChanged)
	step(driver.StepStarted)
	want := []string{"signal SIGUSR1", "requeue", "update", "update", "update", "discard", "update", "update", "update"}
	if len(h.done) != len(want) {
		t.Fatalf("the broker was asked for %q, want %q", h.done, want)
	}
	for i := range want {
		if h.done[i] != want[i] {
			t.Errorf("effect %d was %q, want %q", i, h.done[i], want[i])
		}
	}
}

func TestASitesDriverSubmitsNoJobs(t *testing.T) {
	t.Parallel()
	r, _ := newSite(t, nil)
	if !r.d.Capabilities().UsersSubmit {
		t.Error("its capabilities do not say so")
	}
	if _, err := r.d.Start(t.Context(), "request", spec()); !errors.Is(err, driver.ErrUnsupported) || r.f.count("sbatch") != 0 {
		t.Errorf("Start: %v after %d submissions, want %v", err, r.f.count("sbatch"), driver.ErrUnsupported)
	}
}

func TestWithoutASaverALineOfTheOutputIsNoCheckpointForASite(t *testing.T) {
	t.Parallel()
	r, _ := newSite(t, nil)
	in := intent(r.job(t, "1"), &driver.Checkpoint{Signal: "USR1", Grace: time.Hour, Done: "saved"})
	if err := r.d.Check(t.Context(), in); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("Check: %v, want %v", err, driver.ErrUnsupported)
	}
}

func TestWhereTheSiteHasThePluginOnlyMarkedJobsAreSeen(t *testing.T) {
	t.Parallel()
	r, _ := newSite(t, func(c *slurm.Config) { c.Marked = true })
	r.f.jobs[2] = &fakeJob{id: 2, state: "RUNNING", name: "plain", script: []byte("#!/bin/sh\n#TUNE mode=apply\n"), cores: 1, mem: 100, submitted: time.Now().UTC()}
	jobs, err := r.d.List(t.Context())
	if err != nil || len(jobs) != 1 || jobs[0].ID != "1" {
		t.Errorf("jobs %+v, %v; want job 1 alone", jobs, err)
	}
	if _, err := r.d.Get(t.Context(), "2"); !errors.Is(err, driver.ErrNotFound) {
		t.Errorf("Get of the job without a mark: %v, want %v", err, driver.ErrNotFound)
	}
}

func TestAStanzaMayStandInTheComment(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.jobs[1] = &fakeJob{
		id: 1, state: "PENDING", name: "train", script: []byte("#!/bin/sh\ntrue\n"), cores: 1, mem: 100,
		comment: "#TUNE mode=apply #TUNE knob cores values=1,2", submitted: time.Now().UTC().Truncate(time.Second),
	}
	job := r.job(t, "1")
	if want := "#!/bin/sh\n#TUNE mode=apply\n#TUNE knob cores values=1,2\ntrue\n"; string(job.Source) != want {
		t.Errorf("source %q, want %q", job.Source, want)
	}
}

// strict refuses every size beforehand.
type strict struct{ *hand }

func (s strict) May(context.Context, string, slurmctl.Update) error {
	return fmt.Errorf("GrpTRES: %w", driver.ErrDenied)
}

func TestASizeThatTheBrokerWouldRefuseStopsNoJob(t *testing.T) {
	t.Parallel()
	r, h := newSite(t, func(c *slurm.Config) {
		c.Saves = func(context.Context, string, driver.JobID, int) (api.Saves, error) { return api.Saves{}, nil }
		c.Actor = strict{&hand{Actor: c.Actor}}
	})
	in := intent(r.job(t, "1"), &driver.Checkpoint{Signal: "USR1", Grace: time.Hour, Done: "saved"})
	in.Change = driver.Change{Cores: 2}
	if err := r.d.Check(t.Context(), in); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("Check: %v, want %v", err, driver.ErrDenied)
	}
	if _, err := r.d.Advance(t.Context(), in); !errors.Is(err, driver.ErrDenied) || len(h.done) != 0 {
		t.Errorf("Advance: %v after %q, want %v and nothing done", err, h.done, driver.ErrDenied)
	}
}

func TestTheNoteOfAnIntentIsOneShortLineOfTheSettingsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newRig(t, func(c *slurm.Config) { c.TaskProlog, c.SettingsDir = true, dir })
	in := intent(r.start(t), nil)
	in.Change, in.Note = driver.Change{Cores: 2}, "move to\ncores=2: "+strings.Repeat("é", 200)
	for range 2 {
		if _, err := r.d.Advance(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.Join(dir, "1"))
	if line := string(got); err != nil || !strings.HasPrefix(line, "# move to cores=2: ??") || strings.Count(line, "\n") != 1 || len(line) > 210 {
		t.Errorf("settings %q, %v", got, err)
	}
}

func TestASettingsFileIsAdaptedWhileTheJobRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newRig(t, func(c *slurm.Config) { c.TaskProlog, c.SettingsDir = true, dir })
	job := r.start(t)
	widen := func(n string, want error) {
		t.Helper()
		if err := r.d.Adapt(t.Context(), job.ID, map[string]string{"widen": n}); !errors.Is(err, want) {
			t.Errorf("widen=%s: %v, want %v", n, err, want)
		}
	}
	shows := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(dir, "1.json")); err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("settings %s, %v, want %s", got, err, want)
		}
	}
	widen("1", driver.ErrConflict) // it waits
	r.f.run(job.ID)
	widen("1", nil)
	widen("1", nil) // changes nothing
	shows(`{"revision":2,"settings":{"widen":1}}`)
	r.reopen(t)
	widen("2", nil)
	shows(`{"revision":3,"settings":{"widen":2}}`)
	in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Nanosecond, Exit: 85})
	in.Discard, in.Change = true, driver.Change{Live: map[string]string{"rate": "0.5"}}
	for range 3 { // the next attempt finds both
		if _, err := r.d.Advance(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	shows(`{"revision":4,"settings":{"rate":0.5,"widen":2}}`)
	r.f.with(job.ID, func(j *fakeJob) { r.f.end(j, "COMPLETED", 0) })
	widen("3", driver.ErrConflict)
	if err := r.d.Adapt(t.Context(), "99", nil); !errors.Is(err, driver.ErrNotFound) {
		t.Errorf("a job that is not there: %v", err)
	}
}

func TestARepeatedStartKeepsWhatIsOnRecordOfItsJob(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.cut = unknown // the answer of sbatch was lost
	if _, err := r.d.Start(t.Context(), "request", spec()); !errors.Is(err, driver.ErrUnknown) {
		t.Fatalf("Start: %v", err)
	}
	r.f.cut = nil
	in := intent(r.job(t, "1"), nil) // the watch has met it meanwhile
	in.Change = driver.Change{Cores: 2}
	for range 2 {
		if _, err := r.d.Advance(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	job := r.start(t)
	if job.Request != "request" || job.Resources.Cores != 1 || job.Change.Cores != 2 {
		t.Errorf("request %q, resources %+v, change %+v; want the request, its owner's one core, and two", job.Request, job.Resources, job.Change)
	}
}

// What stayed would be found when the tests of the package have ended.
func TestAWatchThatBreaksLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *slurm.Config) { c.Wake = filepath.Join(t.TempDir(), "wake") })
	r.start(t)
	events, err := r.d.Watch(context.WithoutCancel(t.Context())) // no one ends it
	if err != nil {
		t.Fatal(err)
	}
	r.f.mu.Lock()
	r.f.jobs[1].state = "no state"
	r.f.mu.Unlock()
	n := 0
	for range events {
		n++
	}
	if n == 0 {
		t.Error("no event before it broke")
	}
}
