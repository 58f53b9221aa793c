package nomad_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/nomad"
)

func TestAJobBeginsWithWhatItsUserAskedFor(t *testing.T) {
	t.Parallel()
	stories(t, map[string]func(*testing.T, *story){
		"it is registered once, its owner's settings are known to whoever looks, and return when they are asked for": beginsChanged,
		"what the controller says that Nomad or this program refuses leaves the job as it is":                        beginsAsItIs,
		"run again under its id it is another job, with a beginning or without":                                      beginsAgain,
		"killed for memory under its beginning it has its owner's memory":                                            beginsTooSmall,
		"a registration whose answer was lost is not repeated":                                                       beginsOnce,
		"what its owner registers over its beginning is his own":                                                     beginsThenOwner,
	})
}

// begin submits the job of a behaviour, with a stanza, as a user whom the controller asks to
// begin with the change.
func (s *story) begin(t *testing.T, client *api.Client, be drivertest.Behaviour, b nomad.Beginning) (driver.JobID, string, driver.Job, error) {
	t.Helper()
	file := strings.Replace(s.file(t, be), `    task "main" {`, stanza, 1)
	var foreseen driver.Job
	u := nomad.Submission{Client: client, Ask: func(_ context.Context, job []byte) (nomad.Beginning, bool) {
		var err error
		if foreseen, err = s.d.Foresee(job); err != nil {
			t.Error(err)
		}
		return b, b.Intent != ""
	}}
	id, err := u.Submit(t.Context(), driver.Spec{Filename: "conformance.nomad.hcl", Source: []byte(file)})
	return id, file, foreseen, err
}

func beginsChanged(t *testing.T, s *story) {
	change := driver.Change{TimeLimit: time.Hour, Env: map[string]string{"BATCH_SIZE": "2"}}
	be := mover(long)
	be.ShowEnv = "BATCH_SIZE"
	id, file, foreseen, err := s.begin(t, s.clean, be, nomad.Beginning{Intent: "head/start", Change: change})
	if err != nil {
		t.Fatal(err)
	}
	got := s.started(t, id)
	if len(got.Attempts) != 1 || got.Attempts[0].Intent != "head/start" || got.Attempts[0].Cause != driver.CauseIntent || got.Change.Env["BATCH_SIZE"] != "2" || got.Change.TimeLimit != time.Hour {
		t.Fatalf("attempts %+v under %+v, want one with the change", got.Attempts, got.Change)
	}
	if v := *s.nomadJob(t, id).Version; v != 0 {
		t.Errorf("version %d, want 0: it is registered once", v)
	}
	// What was foreseen is what came, so that what is decided by it is about this job.
	same := []cmp.Option{
		cmpopts.IgnoreFields(driver.Job{}, "Source", "State", "Attempt", "Attempts", "Submitted", "Started", "Change", "Node"),
		cmpopts.EquateEmpty(),
	}
	if diff := cmp.Diff(foreseen, got, same...); diff != "" {
		t.Errorf("foreseen and there (-foreseen +there):\n%s", diff)
	}
	sub, _, err := s.clean.Jobs().Submission("conformance", 0, s.read())
	if err != nil || !strings.HasPrefix(sub.Source, "# Registered by pitchpipe for intent head/start") || !strings.HasSuffix(sub.Source, file) {
		t.Errorf("submission %+v, %v; want its owner's file behind what was changed", sub, err)
	}
	// Another controller, who has no record of it, sees the same.
	files, err := durable.OpenFolder(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.cfg
	cfg.Journal = files
	other, err := nomad.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := other.Get(t.Context(), id)
	if cerr := other.Close(); err != nil || cerr != nil || seen.Fingerprint != got.Fingerprint || len(seen.Attempts) != 1 || seen.Attempts[0].Intent != "head/start" {
		t.Errorf("another sees %+v (%v)", seen, errors.Join(err, cerr))
	}
	if env := s.found(t, id, `(?m)^env BATCH_SIZE=(.*)$`); len(env) != 1 || env[0] != "2" {
		t.Errorf("it has BATCH_SIZE %v, want 2", env)
	}
	s.reopen(t) // a crash, here where nothing is under way
	s.drives(t, s.intent(got, "back", driver.Change{}), driver.StepStarted)
	got = s.finish(t, id)
	if got.State != driver.Succeeded || len(got.Attempts) != 2 || !got.Attempts[1].Change.Empty() || got.Attempts[0].Change.Env["BATCH_SIZE"] != "2" {
		t.Errorf("%s after %+v, want its owner's settings in the second attempt", got.State, got.Attempts)
	}
	if env := s.nomadJob(t, id).TaskGroups[0].Tasks[0].Env; env["BATCH_SIZE"] != "" || s.nomadJob(t, id).TaskGroups[0].MaxRunDuration != nil {
		t.Errorf("registered is %v, want what its owner wrote", env)
	}
	if sub, _, err := s.clean.Jobs().Submission("conformance", 1, s.read()); err != nil || strings.Contains(sub.Source, "head/start") || !strings.HasSuffix(sub.Source, file) {
		t.Errorf("submission %+v, %v; want its owner's file", sub, err)
	}
	s.eachOnce(t, id)
}

func beginsAsItIs(t *testing.T, s *story) {
	for name, c := range map[string]driver.Change{
		"nothing":              {},
		"a variable of Nomad":  {Env: map[string]string{"NOMAD_X": "1"}},
		"a time limit of 1 ns": {TimeLimit: 1},
		"a settings file":      {Live: map[string]string{"a": "1"}},
	} {
		id, _, _, err := s.begin(t, s.clean, drivertest.Behaviour{Epochs: 1}, nomad.Beginning{Intent: "head/start", Change: c})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := s.wait(t, id, "it ends", ended)
		if got.State != driver.Succeeded || len(got.Attempts) != 1 || got.Attempts[0].Intent != "" || !got.Change.Empty() {
			t.Errorf("%s: %s after %+v, want one as its owner wrote it", name, got.State, got.Attempts)
		}
		done(t)(s.clean.Jobs().Deregister("conformance", true, s.write()))
		eventually(t, "it is forgotten", func() bool {
			_, _, err := s.clean.Jobs().Info("conformance", s.read())
			return err != nil
		})
	}
	job := s.nomadFile(t, drivertest.Behaviour{Epochs: 1})
	for what, c := range map[string]driver.Change{
		"more cores than there are": {Cores: 4096},
		"what no job can have":      {Live: map[string]string{"a": "1"}},
	} {
		if err := s.d.MayBegin(t.Context(), job, c); err == nil {
			t.Errorf("%s may be begun with", what)
		}
	}
	if err := s.d.MayBegin(t.Context(), job, driver.Change{TimeLimit: time.Hour}); err != nil {
		t.Errorf("what fits is refused: %v", err)
	}
}

// nomadFile is the job of a behaviour as JSON.
func (s *story) nomadFile(t *testing.T, be drivertest.Behaviour) []byte {
	t.Helper()
	job, err := s.clean.Jobs().ParseHCL(s.file(t, be), true)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func beginsAgain(t *testing.T, s *story) {
	var last driver.Job
	for i, intent := range []string{"first", "", "third", "fourth"} {
		b := nomad.Beginning{Intent: intent, Change: driver.Change{Env: map[string]string{"BATCH_SIZE": fmt.Sprint(i)}}}
		var id driver.JobID
		eventually(t, "it is submitted", func() bool {
			var err error
			if id, _, _, err = s.begin(t, s.clean, drivertest.Behaviour{Epochs: 2, Epoch: epoch}, b); err != nil && !errors.Is(err, driver.ErrConflict) {
				t.Fatal(err)
			}
			return err == nil
		})
		got := s.wait(t, id, "it ends", func(j driver.Job) bool { return j.State.Ended() && j.Submitted.After(last.Submitted) })
		if got.State != driver.Succeeded || len(got.Attempts) != 1 || got.Attempts[0].Intent != intent || (got.Change.Env["BATCH_SIZE"] == fmt.Sprint(i)) != (intent != "") {
			t.Errorf("run %d: %s after %+v under %+v", i, got.State, got.Attempts, got.Change)
		}
		if last.Fingerprint != "" && got.Fingerprint != last.Fingerprint {
			t.Errorf("run %d: what its owner wrote is shown as another", i)
		}
		last = got
	}
}

func beginsTooSmall(t *testing.T, s *story) {
	be := drivertest.Behaviour{Epochs: 3, Epoch: epoch, Saves: true, MemoryBytes: 256 << 20, UseMemory: 96 << 20}
	id, _, _, err := s.begin(t, s.clean, be, nomad.Beginning{Intent: "small", Change: driver.Change{MemoryBytes: 32 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	got := s.wait(t, id, "it ends", ended)
	if got.State == driver.Succeeded && len(got.Attempts) == 1 {
		t.Skip("memory is not enforced here")
	}
	if got.State != driver.Succeeded || len(got.Attempts) != 2 || got.Attempts[1].Cause != driver.CauseMemory || !got.Attempts[1].Change.Empty() {
		t.Errorf("%s after %+v, want its owner's memory in the second attempt", got.State, got.Attempts)
	}
}

func beginsOnce(t *testing.T, s *story) {
	var lost atomic.Bool
	s.proxy.set(func(p *proxy) {
		p.cut = func(r *http.Request) (bool, bool) {
			return false, registers(r) && r.URL.Path == "/v1/jobs" && lost.CompareAndSwap(false, true)
		}
	})
	b := nomad.Beginning{Intent: "lost", Change: driver.Change{Env: map[string]string{"BATCH_SIZE": "2"}}}
	if _, _, _, err := s.begin(t, s.cfg.Client, mover(2), b); err == nil || errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrDenied) {
		t.Errorf("submitted without an answer: %v, want that it is unknown", err)
	}
	if n := s.proxy.count("PUT /v1/jobs"); n != 1 {
		t.Errorf("%d registrations, want one", n)
	}
	got := s.wait(t, driver.JobID("conformance@"+s.ns), "it ends", ended)
	if got.State != driver.Succeeded || len(got.Attempts) != 1 || got.Attempts[0].Intent != "lost" {
		t.Errorf("%s after %+v", got.State, got.Attempts)
	}
}

// beginsThenOwner: the owner takes what Nomad shows of his job, writes another value over
// the one that it began with, and registers that while it runs.
func beginsThenOwner(t *testing.T, s *story) {
	b := nomad.Beginning{Intent: "begun", Change: driver.Change{Env: map[string]string{"BATCH_SIZE": "2"}}}
	id, _, _, err := s.begin(t, s.clean, mover(long), b)
	if err != nil {
		t.Fatal(err)
	}
	before := s.started(t, id)
	in := s.intent(before, "late", driver.Change{TimeLimit: time.Hour})
	release := s.hold(t) // it is still saving when its owner comes
	s.ask(t, in)
	job := s.nomadJob(t, id)
	job.TaskGroups[0].Tasks[0].Env["BATCH_SIZE"] = "7"
	done(t)(s.clean.Jobs().Register(job, s.write()))
	release()
	s.drives(t, in, driver.StepSuperseded)
	got := s.finish(t, id)
	n := len(got.Attempts)
	if got.Fingerprint == before.Fingerprint || n < 2 || got.Attempts[n-1].Intent != "" || !got.Attempts[n-1].Change.Empty() || got.Resources.Env["BATCH_SIZE"] != "7" {
		t.Errorf("attempts %+v of what its owner wrote, %v; want his own last", got.Attempts, got.Resources.Env)
	}
}
