package nomad_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
)

// 2.4: a change of the environment alone, by a variable that the job's own template
// renders. No version of the job is made by it.
func TestMayRestart(t *testing.T) { // not parallel: a machine has its limits
	tests := map[string]func(*testing.T, *story){
		"2.4 a change of the environment alone is written to a variable, and its template restarts it in place": restartsOnce,
		"2.4 a job that says that it saved goes on with the variables of its template":                          restartsSayer,
		"2.4 it is changed again and back, in one allocation":                                                   restartsBack,
		"2.4 what its owner writes to the variable stays":                                                       ownersVariable,
		"2.4 what its owner writes before us supersedes an intent":                                              ownersVariableFirst,
		"2.4 a change of more than the environment is registered, and a variable of before says nothing to it":  restartsThenRegisters,
		"2.4 what its owner registers anew has nothing of a variable of before":                                 ownersRunAfterRestart,
		"2.4 work that ends before its template is rendered is done once":                                       endsBeforeRestart,
		"2.4 a change of the environment that discards the attempt is registered":                               discardsTemplated,
		"2.4 a template that is another is left alone, and the change is registered":                            anotherTemplate,
	}
	for n := range 2 {
		for _, after := range []bool{false, true} {
			name := fmt.Sprintf("2.4 it goes on after a crash before request %d", n)
			if after {
				name = fmt.Sprintf("2.4 it goes on after a crash behind request %d", n)
			}
			tests[name] = func(t *testing.T, s *story) { restartCrash(t, s, int64(n), after) }
		}
	}
	stories(t, tests)
}

// templated registers a job whose environment can be changed in place: wait is how long its
// template waits for more.
func (s *story) templated(t *testing.T, be drivertest.Behaviour, wait time.Duration, change func(string) string) driver.JobID {
	t.Helper()
	s.policy = "attempts = 9\n      delay    = \"10s\"\n      mode     = \"fail\""
	be.ShowEnv = "BATCH_SIZE"
	file := strings.Replace(s.file(t, be), `    task "main" {`, stanza, 1)
	file = strings.Replace(file, `kill_timeout = "1s"`, `kill_timeout = "1s"
      template {
        data        = <<EOT
`+spec.Template+`
EOT
        destination = "local/tuned.env"
        env         = true
        splay       = "0s"
        wait {
          min = "`+wait.String()+`"
          max = "`+(10*wait).String()+`"
        }
      }`, 1)
	if change != nil {
		file = change(file)
	}
	job, err := s.clean.Jobs().ParseHCL(file, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := spec.Once(job, s.ns); err != nil { // of the same id in other namespaces there are other runs
		t.Fatal(err)
	}
	if _, task := spec.Main(job); !be.SaysSaved { // Nomad's own end of the task is the request to save
		task.KillSignal, task.KillTimeout = "SIGUSR1", new(20*time.Second)
	}
	sub := &api.JobSubmission{Source: file, Format: "hcl2"}
	done(t)(s.clean.Jobs().RegisterOpts(job, &api.RegisterOptions{Submission: sub}, s.write()))
	id := driver.JobID(*job.ID + "@" + s.ns)
	t.Cleanup(func() { s.ends(t) })
	return id
}

// ends stops a job and waits until it has saved for the last time.
func (s *story) ends(t *testing.T) {
	t.Helper()
	if _, _, err := s.clean.Jobs().Deregister("conformance", false, s.write()); err != nil {
		t.Error(err)
	}
	eventually(t, "nothing of it runs", func() bool {
		list, _, err := s.clean.Jobs().Allocations("conformance", true, s.read())
		return err == nil && !slices.ContainsFunc(list, func(a *api.AllocationListStub) bool { return !view.Over(a) })
	})
}

const soon = 100 * time.Millisecond

func batch(n string) driver.Change { return driver.Change{Env: map[string]string{"BATCH_SIZE": n}} }

// environments are the values that the job has found in its environment, start by start.
func (s *story) environments(t *testing.T, id driver.JobID) []string {
	t.Helper()
	return s.found(t, id, `(?m)^env BATCH_SIZE=(.*)$`)
}

func (s *story) variable(t *testing.T) *api.Variable {
	t.Helper()
	v, _, err := s.clean.Variables().Peek("nomad/jobs/conformance/g/main", s.read())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// inPlace fails the test unless all attempts were in one allocation and one version, and
// the last of them has the change.
func (s *story) inPlace(t *testing.T, id driver.JobID, n int, intent string, c driver.Change) driver.Job {
	t.Helper()
	got := s.wait(t, id, fmt.Sprintf("attempt %d runs", n), func(j driver.Job) bool { return j.Attempt == n })
	list := s.allocs(t, id)
	if v := *s.nomadJob(t, id).Version; v != 0 || len(list) != 1 {
		t.Fatalf("version %d, %d allocations, want what its owner registered and its one allocation", v, len(list))
	}
	for i, a := range got.Attempts {
		if a.Unit != list[0].ID+".main" || a.Number != i+1 {
			t.Errorf("attempt %d is %+v", i+1, a)
		}
		if i > 0 && (got.Attempts[i-1].Ended.IsZero() || got.Attempts[i-1].Ended.After(a.Started)) {
			t.Errorf("attempt %d ended %v, the next began %v", i, got.Attempts[i-1].Ended, a.Started)
		}
	}
	last := got.Attempts[n-1]
	if last.Intent != intent || !maps.Equal(last.Change.Env, c.Env) || !maps.Equal(got.Change.Env, c.Env) {
		t.Errorf("the last attempt is %+v under %+v, want intent %s and %v", last, got.Change, intent, c.Env)
	}
	return got
}

func (s *story) eachOnce(t *testing.T, id driver.JobID) {
	t.Helper()
	for i, epoch := range s.output(t, id) {
		if epoch != fmt.Sprint(i+1) {
			t.Fatalf("epochs %v, want each once", s.output(t, id))
		}
	}
}

func restartsOnce(t *testing.T, s *story) {
	id := s.templated(t, mover(long), soon, nil)
	job := s.started(t, id)
	if step := s.drive(t, s.intent(job, "more", batch("64"))); step.Kind != driver.StepStarted || step.Attempt != 2 {
		t.Fatalf("step %+v, want the second attempt", step)
	}
	s.inPlace(t, id, 2, "more", batch("64"))
	if n := s.proxy.count("PUT /v1/job"); n != 0 {
		t.Errorf("%d registrations, want none", n)
	}
	got := s.finish(t, id)
	if got.State != driver.Succeeded || got.Attempt != 2 || got.Attempts[0].ExitCode != savedExit || got.Attempts[1].ExitCode != 0 {
		t.Errorf("%s after %+v", got.State, got.Attempts)
	}
	s.eachOnce(t, id)
	if env := s.environments(t, id); len(env) == 0 || env[0] != "" || env[len(env)-1] != "64" {
		t.Errorf("BATCH_SIZE was %q, want none at first and 64 at last", env)
	}
	eventually(t, "the variable is removed", func() bool { s.get(t, id); return s.variable(t) == nil })
}

func restartsSayer(t *testing.T, s *story) {
	id := s.templated(t, sayer(long), soon, nil)
	job := s.started(t, id)
	if step := s.drive(t, says(s.intent(job, "more", batch("64")))); step.Kind != driver.StepStarted || step.Attempt != 2 {
		t.Fatalf("step %+v, want the second attempt", step)
	}
	s.inPlace(t, id, 2, "more", batch("64"))
	eventually(t, "it has the variable", func() bool { return slices.Equal(s.environments(t, id), []string{"", "64"}) })
}

func restartsBack(t *testing.T, s *story) {
	id := s.templated(t, mover(long), soon, nil)
	for i, c := range []driver.Change{batch("64"), batch("128"), {}} {
		s.works(t, id)
		job := s.wait(t, id, "it runs", func(j driver.Job) bool { return running(j) && j.Attempt == i+1 })
		name := fmt.Sprintf("intent-%d", i)
		s.drives(t, s.intent(job, name, c), driver.StepStarted)
		s.inPlace(t, id, i+2, name, c)
	}
	eventually(t, "it has its owner's again", func() bool { env := s.environments(t, id); return len(env) > 3 && env[len(env)-1] == "" })
	// A controller that is started again knows them all.
	s.reopen(t)
	s.inPlace(t, id, 4, "intent-2", driver.Change{})
}

func (s *story) put(t *testing.T, items map[string]string) {
	t.Helper()
	v := &api.Variable{Namespace: s.ns, Path: "nomad/jobs/conformance/g/main", Items: items}
	done(t)(s.clean.Variables().Update(v, s.write()))
}

func ownersVariable(t *testing.T, s *story) {
	id := s.templated(t, mover(long), soon, nil)
	job := s.started(t, id)
	s.drives(t, s.intent(job, "more", batch("64")), driver.StepStarted)
	s.put(t, map[string]string{spec.AllocVariable: s.allocs(t, id)[0].ID, "BATCH_SIZE": "7"})
	got := s.inPlace(t, id, 2, "more", batch("64"))
	var err error
	eventually(t, "it is refused, at once or when the template has restarted it for its owner", func() bool {
		_, err = s.d.Advance(t.Context(), s.intent(got, "again", batch("64")))
		return err != nil
	})
	if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(fmt.Sprint(err), "its owner") {
		t.Errorf("%v, want %v that names its owner", err, driver.ErrUnsupported)
	}
}

func ownersVariableFirst(t *testing.T, s *story) {
	id := s.templated(t, mover(long), soon, nil)
	job := s.started(t, id)
	alloc := s.allocs(t, id)[0].ID
	var once atomic.Bool
	s.proxy.set(func(p *proxy) {
		p.before = func(r *http.Request) {
			if writes(r) && !once.Swap(true) {
				s.put(t, map[string]string{spec.AllocVariable: alloc, "BATCH_SIZE": "7"})
			}
		}
	})
	if step := s.drive(t, s.intent(job, "more", batch("64"))); step.Kind != driver.StepSuperseded || !strings.Contains(step.Detail, "its owner wrote") {
		t.Errorf("step %+v, want %s", step, driver.StepSuperseded)
	}
	if v := s.variable(t); v == nil || v.Items["BATCH_SIZE"] != "7" {
		t.Errorf("the variable is %+v, want its owner's", v)
	}
	if v := *s.nomadJob(t, id).Version; v != 0 {
		t.Errorf("version %d", v)
	}
}

func writes(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/v1/var/")
}

func restartsThenRegisters(t *testing.T, s *story) {
	id := s.templated(t, mover(long), soon, nil)
	job := s.started(t, id)
	s.drives(t, s.intent(job, "more", batch("64")), driver.StepStarted)
	job = s.inPlace(t, id, 2, "more", batch("64"))
	s.works(t, id)
	c := batch("128")
	c.TimeLimit = time.Hour
	s.drives(t, s.intent(job, "longer", c), driver.StepStarted)
	got := s.wait(t, id, "the third attempt runs", func(j driver.Job) bool { return running(j) && j.Attempt == 3 })
	if v := *s.nomadJob(t, id).Version; v != 1 || got.Attempts[2].Unit == got.Attempts[1].Unit || got.Attempts[2].Intent != "longer" {
		t.Errorf("version %d, %+v", v, got.Attempts)
	}
	eventually(t, "it has what was registered", func() bool { env := s.environments(t, id); return env[len(env)-1] == "128" })
	// And from there in place again.
	s.works(t, id)
	c.Env = map[string]string{"BATCH_SIZE": "256"}
	if step := s.drive(t, s.intent(got, "largest", c)); step.Kind != driver.StepStarted || step.Attempt != 4 {
		t.Fatalf("step %+v", step)
	}
	got = s.get(t, id)
	if v := *s.nomadJob(t, id).Version; v != 1 || got.Change.TimeLimit != time.Hour || got.Change.Env["BATCH_SIZE"] != "256" {
		t.Errorf("version %d, %+v", v, got.Change)
	}
}

func ownersRunAfterRestart(t *testing.T, s *story) {
	id := s.templated(t, mover(long), soon, nil)
	job := s.started(t, id)
	s.drives(t, s.intent(job, "more", batch("64")), driver.StepStarted)
	s.templated(t, mover(long), soon, func(file string) string { return strings.Replace(file, "memory = 128", "memory = 130", 1) })
	got := s.wait(t, id, "its owner's runs", func(j driver.Job) bool { return running(j) && j.Attempt == 3 })
	if last := got.Attempts[2]; !last.Change.Empty() || last.Cause != driver.CauseSubmitted {
		t.Errorf("the third attempt is %+v, want its owner's", last)
	}
	eventually(t, "it has its owner's", func() bool { env := s.environments(t, id); return env[len(env)-1] == "" })
}

func endsBeforeRestart(t *testing.T, s *story) {
	id := s.templated(t, sayer(25), time.Minute, nil)
	job := s.started(t, id)
	s.drives(t, says(s.intent(job, "more", batch("64"))), driver.StepFinished)
	got := s.inPlace(t, id, 1, "", driver.Change{})
	if got.State != driver.Succeeded {
		t.Errorf("%s", got.State)
	}
	s.eachOnce(t, id)
}

func discardsTemplated(t *testing.T, s *story) {
	id := s.templated(t, mover(long), soon, nil)
	job := s.started(t, id)
	s.drives(t, s.intent(job, "more", batch("64")), driver.StepStarted)
	job = s.inPlace(t, id, 2, "more", batch("64"))
	saved := len(s.output(t, id))
	s.epochs(t, id, saved+2)
	defer s.hold(t)()
	in := s.intent(job, "back", driver.Change{})
	in.Discard = true
	s.drives(t, in, driver.StepStarted)
	got := s.wait(t, id, "the third attempt runs", func(j driver.Job) bool { return running(j) && j.Attempt == 3 })
	if v := *s.nomadJob(t, id).Version; v != 1 || got.Attempts[2].Unit == got.Attempts[1].Unit || got.Attempts[2].Intent != "back" {
		t.Errorf("version %d, %+v; want another allocation of the next version", v, got.Attempts)
	}
	eventually(t, "it has its owner's environment", func() bool { env := s.environments(t, id); return env[len(env)-1] == "" })
}

func anotherTemplate(t *testing.T, s *story) {
	id := s.templated(t, mover(long), soon, func(file string) string { return strings.Replace(file, "{{ .K }}", "X_{{ .K }}", 1) })
	job := s.started(t, id)
	s.drives(t, s.intent(job, "more", batch("64")), driver.StepStarted)
	if v := *s.nomadJob(t, id).Version; v != 1 || s.variable(t) != nil {
		t.Errorf("version %d, variable %+v: want a registration", v, s.variable(t))
	}
}

// restartCrash: the controller dies before or after one of the requests that change
// something: the signal and the write.
func restartCrash(t *testing.T, s *story, n int64, after bool) {
	id := s.templated(t, mover(long), soon, nil)
	job := s.started(t, id)
	in := s.intent(job, "moved", batch("64"))
	s.dieAt(t, in, n, after)
	s.inPlace(t, id, 2, "moved", in.Change)
	s.eachOnce(t, id)
}
