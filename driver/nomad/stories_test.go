package nomad_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	"pitchpipe/driver/nomad"
	"pitchpipe/driver/nomad/view"
	"pitchpipe/test/nomadagent"
	"pitchpipe/test/sandbox"
)

// story is one driver behind a proxy, and an agent.
type story struct {
	*bench
	proxy *proxy
	agent *nomadagent.Agent
	clean *api.Client // not through the proxy
}

// stories runs one test for each trap on one agent of each kind.
func stories(t *testing.T, tests map[string]func(t *testing.T, s *story)) {
	t.Helper()
	nomadagent.Both(t, nomadagent.Options{}, func(t *testing.T, a *nomadagent.Agent) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				clean := a.Client(t)
				p := &proxy{}
				s := &story{proxy: p, agent: a, clean: clean}
				s.bench = newBench(t, p.client(t, clean), nil)
				test(t, s)
			})
		}
	})
}

// eventually waits for what must come.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	sandbox.Until(t, drivertest.Patience, what, is)
}

// stanza is what has a job seen that its owner registered.
const stanza = `    scaling {
      enabled = false
      min     = 1
      max     = 1
      policy {
        tuning {
          mode = "apply"
        }
      }
    }
    task "main" {`

// register registers a job as its owner does, with a stanza, after a change of its file.
func (s *story) register(t *testing.T, be drivertest.Behaviour, change func(string) string) driver.JobID {
	t.Helper()
	file := strings.Replace(s.file(t, be), `    task "main" {`, stanza, 1)
	if change != nil {
		file = change(file)
	}
	return s.submit(t, file)
}

// submit registers a job file as it is.
func (s *story) submit(t *testing.T, file string) driver.JobID {
	t.Helper()
	job, err := s.clean.Jobs().ParseHCL(file, true)
	if err != nil {
		t.Fatal(err)
	}
	sub := &api.JobSubmission{Source: file, Format: "hcl2"}
	done(t)(s.clean.Jobs().RegisterOpts(job, &api.RegisterOptions{Submission: sub}, s.write()))
	return driver.JobID(*job.ID + "@" + s.ns)
}

// memory is what the node has, in MiB.
func (s *story) memory(t *testing.T) int64 {
	t.Helper()
	nodes, _, err := s.clean.Nodes().List(&api.QueryOptions{Params: map[string]string{"resources": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	return nodes[0].NodeResources.Memory.MemoryMB
}

// runs registers a job as its owner does, and waits until it runs and has ended an epoch.
func (s *story) runs(t *testing.T, be drivertest.Behaviour, change func(string) string) (driver.JobID, driver.Job) {
	t.Helper()
	id := s.register(t, be, change)
	return id, s.started(t, id)
}

// started waits until the job runs and has ended an epoch.
func (s *story) started(t *testing.T, id driver.JobID) driver.Job {
	t.Helper()
	s.epochs(t, id, 1)
	return s.wait(t, id, "it runs", running)
}

// done fails the test where a call of the API failed.
func done(t *testing.T) func(_, _ any, err error) {
	t.Helper()
	return func(_, _ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (s *story) write() *api.WriteOptions { return &api.WriteOptions{Namespace: s.ns} }
func (s *story) read() *api.QueryOptions  { return &api.QueryOptions{Namespace: s.ns} }

func (s *story) get(t *testing.T, id driver.JobID) driver.Job {
	t.Helper()
	job, err := s.d.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func (s *story) wait(t *testing.T, id driver.JobID, what string, is func(driver.Job) bool) driver.Job {
	t.Helper()
	var job driver.Job
	eventually(t, what, func() bool {
		job = s.get(t, id)
		return is(job)
	})
	return job
}

// finish has a job that would go on for longer than any test come to its end.
func (s *story) finish(t *testing.T, id driver.JobID) driver.Job {
	t.Helper()
	defer s.hurry(t)()
	return s.wait(t, id, "it ends", ended)
}

// hurry lets epochs take no time, until the function that it returns is called.
func (s *story) hurry(t *testing.T) (stop func()) {
	t.Helper()
	return s.says(t, "finish")
}

// hold keeps jobs that were asked to save from leaving, until the function that it returns
// is called.
func (s *story) hold(t *testing.T) (release func()) {
	t.Helper()
	return s.says(t, "hold")
}

// says makes a file that the jobs look for, until the function that it returns is called.
func (s *story) says(t *testing.T, name string) (stop func()) {
	t.Helper()
	file := filepath.Join(s.dir, name)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Error(err)
	}
	return func() {
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	}
}

func running(j driver.Job) bool { return j.State == driver.Running }
func ended(j driver.Job) bool   { return j.State.Ended() }

// epochs waits until the job has ended n epochs.
func (s *story) epochs(t *testing.T, id driver.JobID, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d epochs of %s", n, id), func() bool { return len(s.output(t, id)) >= n })
}

// works waits until the attempt that runs has ended an epoch: from then on it knows signals.
func (s *story) works(t *testing.T, id driver.JobID) {
	t.Helper()
	s.epochs(t, id, len(s.output(t, id))+1)
}

// found is what the first group of a pattern matches in the job's output, line by line.
func (s *story) found(t *testing.T, id driver.JobID, pattern string) []string {
	t.Helper()
	r, err := s.d.Logs(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		out = append(out, m[1])
	}
	return out
}

// output are the epochs that the job has ended.
func (s *story) output(t *testing.T, id driver.JobID) []string {
	t.Helper()
	return s.found(t, id, `(?m)^epoch (\d+)/`)
}

func (s *story) intent(job driver.Job, id string, c driver.Change) driver.Intent {
	return driver.Intent{
		ID: id, Job: job.ID, Attempt: job.Attempt, Fingerprint: job.Fingerprint, Change: c,
		Checkpoint: &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Exit: savedExit}, Note: "a test",
	}
}

// drive advances the intent until it is done.
func (s *story) drive(t *testing.T, in driver.Intent) driver.Step {
	t.Helper()
	var step driver.Step
	eventually(t, "intent "+in.ID+" is done", func() bool {
		var err error
		step, err = s.d.Advance(t.Context(), in)
		if err != nil && !errors.Is(err, driver.ErrTransient) && !errors.Is(err, driver.ErrUnknown) {
			t.Fatal(err)
		}
		return err == nil && step.Kind.Done()
	})
	return step
}

// drives advances the intent until it is done, which must be by that step.
func (s *story) drives(t *testing.T, in driver.Intent, want driver.StepKind) {
	t.Helper()
	if step := s.drive(t, in); step.Kind != want {
		var events []string
		for _, a := range s.allocs(t, in.Job) {
			for _, task := range a.TaskStates {
				for _, e := range task.Events {
					events = append(events, fmt.Sprintf("%s %s %d %v", a.ID[:8], e.Type, e.ExitCode, e.Details))
				}
			}
		}
		t.Fatalf("intent %s: step %+v, want %s; the allocations had %q", in.ID, step, want, events)
	}
}

func (s *story) nomadJob(t *testing.T, id driver.JobID) *api.Job {
	t.Helper()
	job, _, err := s.clean.Jobs().Info(strings.TrimSuffix(string(id), "@"+s.ns), s.read())
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func (s *story) allocs(t *testing.T, id driver.JobID) []*api.AllocationListStub {
	t.Helper()
	list, _, err := s.clean.Jobs().Allocations(strings.TrimSuffix(string(id), "@"+s.ns), true, s.read())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

const (
	epoch = 300 * time.Millisecond
	// long is more epochs than any test takes: a job of so many ends when it is asked to.
	long = 1000
)

func mover(n int) drivertest.Behaviour {
	return drivertest.Behaviour{Epochs: n, Epoch: epoch, Saves: true}
}

func sayer(n int) drivertest.Behaviour {
	b := mover(n)
	b.SaysSaved = true
	return b
}

// asked makes the intent one for a job that says that it saved and goes on.
func says(in driver.Intent) driver.Intent {
	in.Checkpoint.Exit, in.Checkpoint.Done = 0, "^saved$"
	return in
}

func TestStories(t *testing.T) {
	if testing.Short() {
		t.Skip("plays the stories of each version of Nomad: make check runs it")
	}
	t.Parallel()
	stories(t, map[string]func(*testing.T, *story){
		"2.2 the compare-and-set does not see completion: finished work that runs again is stopped at once": completionRace(false),
		"2.2 work that ends before what discards it is registered is done once":                             completionRace(true),
		"2.2 a changed registration of a finished job would run it again: it is not made":                   finishedStays,
		"2.2 count 2 would run finished indexes again: such a job is seen and refused":                      severalRefused,
		"2.2 a plan that fails is refused before the signal":                                                planFirst,
		"2.2 a blocked evaluation is undone at once":                                                        blockedIsUndone,
		"2.2 a version keeps its owner's source with what was changed":                                      submissionStays,
		"2.2 the owner's settings return after more versions than Nomad keeps":                              manyVersions,
		"2.2 an owner's own run that undoes tuning supersedes an intent":                                    ownersRun,
		"2.2 an owner's other file supersedes an intent, and is his own from then on":                       ownersOtherFile,
		"2.2 an index that moved is a conflict, recognised by a 500 and its text":                           staleIndex,
		"2.3 a dispatched job is refused, its parent too":                                                   dispatched,
		"2.3 a replacement by alloc stop is another attempt under the same settings":                        allocStop,
		"2.5 cores take the place of cpu":                                                                   coresForCPU,
		"a job that was purged and registered anew is another":                                              purged,
		"what its owner runs again after its end is a new job under the same id":                            ranAgain,
		"a job that left too late, was started again by its policy and has finished is not run again":       lateStays,
		"a job that waits for room is not registered to wait for more":                                      grownInQueue(false),
		"a change that is taken back from a job that returned is no run of its owner's":                     grownInQueue(true),
		"a changed job that is stopped is still what its owner wrote":                                       stoppedStays,
		"a job that is registered anew while it is read is read again":                                      readBetween,
		"a job that was purged before anything was done to it is cancelled":                                 purgedUnchanged,
		"a job that is larger than every node is registered with a warning":                                 submitTooLarge,
		"a job that lives is not registered over":                                                           submitTwice,
		"a signal whose answer was lost is not sent again":                                                  signalOnce,
		"a file that the agent refuses is invalid and leaves nothing":                                       badFile,
		"progress is heard from an attempt's first line to its end":                                         listens,
	})
}

func readBetween(t *testing.T, s *story) {
	remembers := func(mib string) func(string) string {
		return func(file string) string { return strings.Replace(file, "memory = 128", "memory = "+mib, 1) }
	}
	id, _ := s.runs(t, mover(long), nil)
	newest := make(chan string, 1)
	asksForAllocations := func(r *http.Request) bool {
		return strings.HasPrefix(r.URL.Path, "/v1/job/") && strings.HasSuffix(r.URL.Path, "/allocations")
	}
	s.proxy.first(asksForAllocations, func() { // the job was read just now
		version := *s.nomadJob(t, id).Version
		s.register(t, mover(long), remembers("150"))
		eventually(t, "what its owner wrote last runs", func() bool {
			list := s.allocs(t, id)
			i := slices.IndexFunc(list, func(a *api.AllocationListStub) bool {
				return a.JobVersion > version && a.ClientStatus == api.AllocClientStatusRunning
			})
			if i >= 0 {
				newest <- list[i].ID
			}
			return i >= 0
		})
	})
	s.register(t, mover(long), remembers("140"))
	unit := ""
	got := s.wait(t, id, "the newest attempt is shown", func(j driver.Job) bool {
		if unit == "" {
			select {
			case unit = <-newest:
			default:
				return false
			}
		}
		return len(j.Attempts) > 0 && strings.HasPrefix(j.Attempts[len(j.Attempts)-1].Unit, unit)
	})
	if got.Resources.MemoryBytes != 150<<20 {
		t.Errorf("attempt %d is shown with %d MiB, want the 150 that its owner wrote for it", got.Attempt, got.Resources.MemoryBytes>>20)
	}
}

func completionRace(discard bool) func(*testing.T, *story) {
	return func(t *testing.T, s *story) { t.Helper(); s.completionRace(t, discard) }
}

func (s *story) completionRace(t *testing.T, discard bool) {
	t.Helper()
	id, job := s.runs(t, sayer(long), nil)
	// The registration reaches Nomad when the job has done its work.
	s.proxy.first(registers, func() {
		defer s.hurry(t)()
		eventually(t, "the job is done", func() bool { return s.allocs(t, id)[0].ClientStatus == "complete" })
	})
	in := says(s.intent(job, "late", driver.Change{TimeLimit: time.Hour}))
	in.Discard = discard
	step := s.drive(t, in)
	if step.Kind != driver.StepFinished {
		t.Fatalf("step %+v, want %s", step, driver.StepFinished)
	}
	if s.proxy.count("DELETE") == 0 {
		t.Error("nothing was stopped: the registration came before the end of the job, so that the test shows nothing")
	}
	got := s.wait(t, id, "it has ended", ended)
	if got.State != driver.Succeeded || len(got.Attempts) != 1 || got.Change.TimeLimit != 0 {
		t.Errorf("%s after %d attempts, want %s after one", got.State, len(got.Attempts), driver.Succeeded)
	}
	eventually(t, "nothing of it runs", func() bool {
		for _, a := range s.allocs(t, id) {
			if a.ClientStatus == "running" || a.ClientStatus == "pending" {
				return false
			}
		}
		return true
	})
	if again, err := s.d.Advance(t.Context(), in); err != nil || again.Kind != driver.StepFinished {
		t.Errorf("asked again: %+v (%v), want %s", again, err, driver.StepFinished)
	}
}

func finishedStays(t *testing.T, s *story) {
	id := s.register(t, drivertest.Behaviour{Epochs: 1}, nil)
	job := s.wait(t, id, "it ends", ended)
	for i, in := range []driver.Intent{s.intent(job, "a", driver.Change{TimeLimit: time.Hour}), s.intent(job, "b", driver.Change{})} {
		if step, err := s.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepFinished {
			t.Errorf("intent %d: %+v (%v), want %s", i, step, err, driver.StepFinished)
		}
	}
	if err := s.d.Check(t.Context(), s.intent(job, "c", driver.Change{})); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("Check: %v, want %v", err, driver.ErrConflict)
	}
	if n := s.proxy.count("/v1/job"); n != 0 {
		t.Errorf("%d requests that change something, want none", n)
	}
}

func severalRefused(t *testing.T, s *story) {
	two := func(file string) string {
		file = strings.Replace(file, "      max     = 1", "      max     = 2", 1)
		return strings.Replace(file, `group "g" {`, "group \"g\" {\n    count = 2", 1)
	}
	id := s.register(t, mover(long), two)
	s.wantRefused(t, id, "count 2")
	eventually(t, "the job that carries a stanza is listed", func() bool {
		jobs, err := s.d.List(t.Context())
		return err == nil && len(jobs) == 1 && jobs[0].ID == id
	})
}

// wantRefused fails the test unless the job is seen and every change of it refused for
// the reason.
func (s *story) wantRefused(t *testing.T, id driver.JobID, reason string) {
	t.Helper()
	in := s.intent(s.get(t, id), "refused", driver.Change{TimeLimit: time.Hour})
	_, err := s.d.Advance(t.Context(), in)
	for _, err := range []error{err, s.d.Check(t.Context(), in)} {
		if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(fmt.Sprint(err), reason) {
			t.Errorf("%v, want %v that says %q", err, driver.ErrUnsupported, reason)
		}
	}
	if n := s.proxy.count("PUT /v1/job"); n != 0 {
		t.Errorf("%d registrations, want none", n)
	}
}

func planFirst(t *testing.T, s *story) {
	id, job := s.runs(t, mover(long), nil)
	// As large as the node, on which something runs that is not this job.
	other := s.register(t, drivertest.Behaviour{Name: "other", Epochs: 1000, Epoch: epoch}, nil)
	s.epochs(t, other, 1)
	in := s.intent(job, "large", driver.Change{MemoryBytes: (s.memory(t) - 64) << 20})
	if _, err := s.d.Advance(t.Context(), in); !errors.Is(err, driver.ErrNoRoom) || !strings.Contains(fmt.Sprint(err), "memory exhausted") {
		t.Errorf("Advance: %v, want %v that names what is exhausted", err, driver.ErrNoRoom)
	}
	if n := s.proxy.count("signal"); n != 0 {
		t.Errorf("%d signals, want none", n)
	}
	if got := s.finish(t, id); got.State != driver.Succeeded || len(got.Attempts) != 1 {
		t.Errorf("%s after %d attempts, want the first to go on", got.State, len(got.Attempts))
	}
}

func blockedIsUndone(t *testing.T, s *story) {
	id, job := s.runs(t, sayer(long), nil)
	free := s.memory(t) - 4096
	// Between the plan and the registration somebody takes the room.
	s.proxy.first(registers, func() {
		other := s.register(t, drivertest.Behaviour{Name: "other", Epochs: 1000, Epoch: epoch, MemoryBytes: free / 2 << 20}, nil)
		eventually(t, "the other is placed", func() bool { return len(s.allocs(t, other)) > 0 })
	})
	step := s.drive(t, says(s.intent(job, "large", driver.Change{MemoryBytes: free * 3 / 4 << 20})))
	if step.Kind != driver.StepNoRoom {
		t.Errorf("step %+v, want %s", step, driver.StepNoRoom)
	}
	if mib := *s.nomadJob(t, id).TaskGroups[0].Tasks[0].Resources.MemoryMB; mib != 128 {
		t.Errorf("the job is registered with %d MiB, want the owner's 128", mib)
	}
	n := len(s.output(t, id))
	s.epochs(t, id, n+2)
	if got := s.get(t, id); got.State != driver.Running || len(got.Attempts) != 1 {
		t.Errorf("%s after %d attempts, want the first attempt to go on", got.State, len(got.Attempts))
	}
}

func submissionStays(t *testing.T, s *story) {
	id, job := s.runs(t, mover(100), nil)
	s.drives(t, s.intent(job, "moved", driver.Change{TimeLimit: time.Hour}), driver.StepStarted)
	registered := s.nomadJob(t, id)
	sub, _, err := s.clean.Jobs().Submission(*registered.ID, int(*registered.Version), s.read())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(sub.Source, "pitchpipe for intent moved") || !strings.Contains(sub.Source, "max_run_duration = 1h0m0s") || !strings.Contains(sub.Source, `task "main"`) {
		t.Errorf("source %q, want the owner's and what was changed", sub.Source)
	}
}

func manyVersions(t *testing.T, s *story) {
	id := s.register(t, mover(long), nil)
	own := s.get(t, id).Fingerprint
	for i := range 8 {
		s.works(t, id)
		job := s.wait(t, id, "the next attempt runs", func(j driver.Job) bool { return running(j) && j.Attempt == i+1 })
		s.works(t, id)
		c := driver.Change{TimeLimit: time.Duration(i+1) * time.Hour}
		if i == 7 {
			c = driver.Change{}
		}
		s.drives(t, s.intent(job, fmt.Sprint("intent-", i), c), driver.StepStarted)
	}
	job := s.nomadJob(t, id)
	if *job.Version < 7 {
		t.Errorf("version %d, want one that Nomad does not remember the first of", *job.Version)
	}
	if got := s.get(t, id); got.Fingerprint != own || got.Resources.TimeLimit != 0 {
		t.Errorf("fingerprint %s and limit %v, want the owner's %s and none", got.Fingerprint, got.Resources.TimeLimit, own)
	}
	if job.TaskGroups[0].MaxRunDuration != nil {
		t.Errorf("time limit %v, want none as its owner", *job.TaskGroups[0].MaxRunDuration)
	}
}

func ownersRun(t *testing.T, s *story) {
	id, job := s.runs(t, mover(long), nil)
	s.drives(t, s.intent(job, "first", driver.Change{MemoryBytes: 200 << 20}), driver.StepStarted)
	s.epochs(t, id, len(s.output(t, id))+2)
	job = s.wait(t, id, "the second attempt runs", func(j driver.Job) bool { return running(j) && j.Attempt == 2 })
	if job.Change.MemoryBytes != 200<<20 {
		t.Errorf("change %+v, want the first intent's", job.Change)
	}
	in := s.intent(job, "second", driver.Change{MemoryBytes: 220 << 20})
	release := s.hold(t) // it is still saving when its owner comes
	s.ask(t, in)
	s.register(t, mover(long), nil) // his CI runs the same file again
	release()
	s.drives(t, in, driver.StepSuperseded)
	got := s.wait(t, id, "the third attempt", func(j driver.Job) bool { return j.Attempt == 3 })
	if got.Change.MemoryBytes != 0 || got.Fingerprint != job.Fingerprint || got.Attempts[2].Cause != driver.CauseSubmitted {
		t.Errorf("change %+v, cause %s, want none of ours and the same fingerprint", got.Change, got.Attempts[2].Cause)
	}
}

func ownersOtherFile(t *testing.T, s *story) {
	id, job := s.runs(t, mover(long), nil)
	in := s.intent(job, "first", driver.Change{MemoryBytes: 200 << 20})
	s.ask(t, in)
	s.register(t, mover(long), func(file string) string { return strings.Replace(file, "memory = 128", "memory = 150", 1) })
	s.drives(t, in, driver.StepSuperseded)
	if got := s.get(t, id); got.Fingerprint == job.Fingerprint || got.Resources.MemoryBytes != 150<<20 {
		t.Errorf("%d bytes, want what its owner wrote now", got.Resources.MemoryBytes)
	}
}

func staleIndex(t *testing.T, s *story) {
	id, job := s.runs(t, mover(long), nil)
	s.proxy.first(registers, func() {
		s.register(t, mover(long), func(file string) string {
			return strings.Replace(file, "type      =", "priority = 60\n  type      =", 1)
		})
	})
	s.drives(t, s.intent(job, "late", driver.Change{TimeLimit: time.Hour}), driver.StepSuperseded)
	if *s.nomadJob(t, id).Priority != 60 {
		t.Error("what the owner wrote was written over")
	}
	if got := s.finish(t, id); got.State != driver.Succeeded {
		t.Errorf("%s, want %s: it had left to save and goes on", got.State, driver.Succeeded)
	}
}

func dispatched(t *testing.T, s *story) {
	parent := s.register(t, mover(long), func(file string) string {
		return strings.Replace(file, `group "g" {`, "parameterized {}\n  group \"g\" {", 1)
	})
	s.wantRefused(t, parent, "dispatched")
	got, _, err := s.clean.Jobs().Dispatch(strings.TrimSuffix(string(parent), "@"+s.ns), nil, nil, "", s.write())
	if err != nil {
		t.Fatal(err)
	}
	s.wantRefused(t, driver.JobID(got.DispatchedJobID+"@"+s.ns), "tune its parameterized parent")
}

func allocStop(t *testing.T, s *story) {
	id, job := s.runs(t, mover(long), nil)
	s.drives(t, s.intent(job, "moved", driver.Change{TimeLimit: time.Hour}), driver.StepStarted)
	job = s.wait(t, id, "the second attempt runs", func(j driver.Job) bool { return running(j) && j.Attempt == 2 })
	alloc, _, _ := strings.Cut(job.Attempts[1].Unit, ".")
	if _, err := s.clean.Allocations().Stop(&api.Allocation{ID: alloc}, s.read()); err != nil {
		t.Fatal(err)
	}
	job = s.wait(t, id, "the third attempt", func(j driver.Job) bool { return j.Attempt == 3 })
	if a := job.Attempts[2]; a.Cause != view.CauseRescheduled || a.Change.TimeLimit != time.Hour {
		t.Errorf("attempt %+v, want cause %s and the settings of the one before", a, view.CauseRescheduled)
	}
	if job.State.Ended() {
		t.Errorf("%s: a stopped allocation is no end of its job", job.State)
	}
}

func coresForCPU(t *testing.T, s *story) {
	b := mover(long)
	b.ShowEnv = "NOMAD_CPU_CORES"
	id, job := s.runs(t, b, nil)
	step := s.drive(t, s.intent(job, "cores", driver.Change{Cores: 1}))
	if step.Kind == driver.StepNoRoom {
		t.Skip("others have the cores")
	}
	if step.Kind != driver.StepStarted {
		t.Fatalf("step %+v", step)
	}
	r := s.nomadJob(t, id).TaskGroups[0].Tasks[0].Resources
	if *r.Cores != 1 {
		t.Errorf("cores %d, want 1", *r.Cores)
	}
	got := s.wait(t, id, "the second attempt", func(j driver.Job) bool { return j.Attempt == 2 })
	if got.Attempts[1].Change.Cores != 1 {
		t.Errorf("attempts %+v, want the second with one core", got.Attempts)
	}
}

func purged(t *testing.T, s *story) {
	id, job := s.runs(t, mover(long), nil)
	in := s.intent(job, "first", driver.Change{TimeLimit: time.Hour})
	s.drives(t, in, driver.StepStarted)
	done(t)(s.clean.Jobs().Deregister(strings.TrimSuffix(string(id), "@"+s.ns), true, s.write()))
	if got, err := s.d.Get(t.Context(), id); err != nil || got.State != driver.Cancelled || got.Detail != "it was purged" {
		t.Errorf("Get: %+v, %v; want a job that was cancelled", got, err)
	}
	s.register(t, mover(long), nil)
	got := s.wait(t, id, "another of that id runs", running)
	if len(got.Attempts) != 1 || got.Attempts[0].Change.TimeLimit != 0 || got.Attempts[0].Cause != driver.CauseSubmitted {
		t.Errorf("attempts %+v, want one of its own", got.Attempts)
	}
	s.works(t, id)
	// A caller that counts intents gives the first the name of the other job's first.
	s.drives(t, s.intent(got, "first", driver.Change{TimeLimit: time.Hour}), driver.StepStarted)
	got = s.wait(t, id, "it runs under the change", func(j driver.Job) bool { return running(j) && j.Attempt == 2 })
	if got.Attempts[1].Change.TimeLimit != time.Hour {
		t.Errorf("attempts %+v, want the second under the change", got.Attempts)
	}
}

func submitTooLarge(t *testing.T, s *story) {
	var warned []string
	u := nomad.Submission{Client: s.clean, Warn: func(text string) { warned = append(warned, text) }}
	for cores, want := range map[int]bool{1: false, 4096: true} {
		warned = nil
		if _, err := u.Submit(t.Context(), s.job(t, drivertest.Behaviour{Name: fmt.Sprintf("cores-%d", cores), Epochs: 1, Cores: cores})); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(warned, "\n"), "it asks for 4096 cores, and the largest node has "); got != want {
			t.Errorf("%d cores: warned %q", cores, warned)
		}
	}
}

func purgedUnchanged(t *testing.T, s *story) {
	id, _ := s.runs(t, mover(long), nil)
	done(t)(s.clean.Jobs().Deregister(strings.TrimSuffix(string(id), "@"+s.ns), true, s.write()))
	gone := func() bool {
		jobs, err := s.d.List(t.Context())
		return err == nil && len(jobs) == 0
	}
	eventually(t, "it is listed no more", gone)
	got, err := s.d.Get(t.Context(), id)
	if err != nil || got.State != driver.Cancelled || got.Detail != "it was purged" || time.Since(got.Ended) > time.Hour || len(got.Attempts) != 1 {
		t.Errorf("Get: %+v, %v; want a job that was cancelled", got, err)
	}
	if _, err := s.d.Get(t.Context(), "never@"+driver.JobID(s.ns)); !errors.Is(err, driver.ErrNotFound) {
		t.Errorf("a job that was never there: %v, want %v", err, driver.ErrNotFound)
	}
	s.register(t, mover(long), nil)
	if got := s.wait(t, id, "another of that id runs", running); len(got.Attempts) != 1 {
		t.Errorf("attempts %+v, want one of its own", got.Attempts)
	}
}

func submitTwice(t *testing.T, s *story) {
	spec := s.job(t, mover(long))
	submit := func() (driver.JobID, error) { return nomad.Submission{Client: s.clean}.Submit(t.Context(), spec) }
	id, err := submit()
	if err != nil || id != driver.JobID("conformance@"+s.ns) {
		t.Fatalf("Submit: %s (%v)", id, err)
	}
	if _, err := submit(); !errors.Is(err, driver.ErrConflict) || !strings.HasSuffix(err.Error(), "or give this one another id") {
		t.Errorf("Submit over a job that lives: %v, want %v", err, driver.ErrConflict)
	}
	if err := s.d.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	s.wait(t, id, "it is cancelled", func(j driver.Job) bool { return j.State == driver.Cancelled })
	eventually(t, "it is submitted again", func() bool {
		_, err := submit()
		return err == nil
	})
}

func signalOnce(t *testing.T, s *story) {
	id, job := s.runs(t, mover(long), nil)
	in := s.intent(job, "moved", driver.Change{TimeLimit: time.Hour})
	var once sync.Once
	s.proxy.set(func(p *proxy) {
		p.cut = func(r *http.Request) (bool, bool) {
			lost := false
			if strings.HasSuffix(r.URL.Path, "/signal") {
				once.Do(func() { lost = true })
			}
			return false, lost
		}
	})
	if _, err := s.d.Advance(t.Context(), in); !errors.Is(err, driver.ErrUnknown) {
		t.Errorf("Advance whose signal had no answer: %v, want %v", err, driver.ErrUnknown)
	}
	eventually(t, "Nomad tells of the signal", func() bool {
		for _, a := range s.allocs(t, id) {
			if view.Signaled(a, "main", 0) {
				return true
			}
		}
		return false
	})
	s.reopen(t)
	s.drives(t, in, driver.StepStarted)
	if n := s.proxy.count("/signal"); n != 1 {
		t.Errorf("%d signals, want 1", n)
	}
}

func badFile(t *testing.T, s *story) {
	for name, source := range map[string]string{
		"an unknown block":                      strings.Replace(s.file(t, mover(1)), `task "main" {`, "nonsense {}\n    task \"main\" {", 1),
		"both cpu and cores":                    strings.Replace(s.file(t, mover(1)), "cpu = 50", "cpu = 50\n        cores = 1", 1),
		"JSON without an ID":                    `{"Job":{"Name":"x"}}`,
		"JSON that is broken":                   `{"Job":`,
		"JSON with a setting that is not known": `{"Job":{"ID":"x","New":1,"Type":"batch","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t","Driver":"raw_exec","Config":{"command":"/bin/true"}}]}]}}`,
		"a namespace that is not seen":          strings.Replace(s.file(t, mover(1)), s.ns, "default", 1),
	} {
		_, err := s.d.Start(t.Context(), "request", driver.Spec{Filename: "bad.nomad.hcl", Source: []byte(source)})
		if !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v, want %v", name, err, driver.ErrInvalid)
		}
	}
	if jobs, err := s.d.List(t.Context()); err != nil || len(jobs) != 0 {
		t.Errorf("%d jobs (%v), want none", len(jobs), err)
	}
	nowhere := strings.Replace(s.file(t, mover(1)), "namespace = ", "# ", 1)
	if job, err := s.d.Start(t.Context(), "request", driver.Spec{Filename: "x.nomad.hcl", Source: []byte(nowhere)}); err != nil || job.Owner != s.ns {
		t.Errorf("of a file that names no namespace: %s in %q (%v), want %q", job.ID, job.Owner, err, s.ns)
	}
	if _, err := s.d.Start(t.Context(), "request 2", driver.Spec{Filename: "x.nomad.hcl", Source: []byte(nowhere), Namespace: "elsewhere"}); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(fmt.Sprint(err), "namespace elsewhere is not seen here") {
		t.Errorf("of its user's namespace: %v, want %v that names it", err, driver.ErrInvalid)
	}
}

func listens(t *testing.T, s *story) {
	var mu sync.Mutex
	heard, calls, unit := "", 0, ""
	done := make(chan struct{})
	if err := s.d.Close(); err != nil {
		t.Fatal(err)
	}
	s.cfg.Listen = func(_ context.Context, _, of string, _ driver.Progress, output io.Reader) error {
		text, err := io.ReadAll(output)
		mu.Lock()
		defer mu.Unlock()
		heard, unit = string(text), of
		calls++
		close(done)
		return err
	}
	s.open(t)
	id := s.register(t, drivertest.Behaviour{Epochs: long, Epoch: epoch}, nil)
	if err := s.d.Listen(t.Context(), id, 7, driver.Progress{}); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("Listen to an attempt that is not: %v, want %v", err, driver.ErrConflict)
	}
	job := s.wait(t, id, "it runs", running)
	for range 2 {
		if err := s.d.Listen(t.Context(), id, 1, driver.Progress{}); err != nil {
			t.Fatal(err)
		}
	}
	s.finish(t, id)
	select {
	case <-done:
	case <-time.After(drivertest.Patience):
		t.Fatal("the reader does not end with the attempt")
	}
	mu.Lock()
	defer mu.Unlock()
	if n := strings.Count(heard, "epoch "); n != long || calls != 1 || unit != job.Attempts[0].Unit {
		t.Errorf("%d epochs heard of %s by %d readers, want %d of %s by one", n, unit, calls, long, job.Attempts[0].Unit)
	}
}
