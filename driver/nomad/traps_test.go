package nomad_test

import (
	"bytes"
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
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	"pitchpipe/driver/jobfile/nomadhcl"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/test/nomadagent"
)

// TestTraps: what Nomad does against expectation, in addition to TestStories.
func TestTraps(t *testing.T) { // not parallel: a machine has its limits
	stories(t, map[string]func(*testing.T, *story){
		"2.1 a setting that this program does not know is not dropped by a change":         unknownSetting,
		"2.1 a version without a source would show that of the one before: it has its own": ownSource,
		"2.2 an owner's run that preserves resources leaves them ours to take back":        preserved,
		"2.2 a tag of a version is no change, and a change does not carry it on":           tagged,
		"2.3 a child whose parent prohibits overlap is refused":                            lonelyChild,
		"2.3 a periodic job's child is moved and its parent stays":                         periodicChild,
		"2.3 a restart in place is the same attempt":                                       restartInPlace,
		"2.4 a template of a variable restarts a task in place: the same attempt":          variableTemplate,
		"2.7 standard error follows the output of an attempt that is over":                 standardError,
		"2.7 progress is heard from a file of the allocation":                              listensToFile,
	})
}

func unknownSetting(t *testing.T, s *story) {
	_, job := s.runs(t, mover(long), nil)
	s.proxy.set(func(p *proxy) {
		p.before = func(r *http.Request) { r.Header.Del("Accept-Encoding") } // an answer that can be read
		p.answer = func(r *http.Response) error {
			if r.Request.URL.Path != "/v1/job/conformance" || r.StatusCode != http.StatusOK {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			body = bytes.Replace(body, []byte(`"Driver":"raw_exec"`), []byte(`"Driver":"raw_exec","FutureSetting":{"Depth":3}`), 1)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Set("Content-Length", fmt.Sprint(len(body)))
			return nil
		}
	})
	_, err := s.d.Advance(t.Context(), s.intent(job, "blind", driver.Change{TimeLimit: time.Hour}))
	if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "TaskGroups.Tasks.FutureSetting") {
		t.Errorf("%v, want %v that names the setting", err, driver.ErrUnsupported)
	}
	if n := s.proxy.count("signal") + s.proxy.count("PUT /v1/job"); n != 0 {
		t.Errorf("%d signals and registrations, want none", n)
	}
}

func ownSource(t *testing.T, s *story) {
	file := strings.Replace(s.file(t, mover(long)), `    task "main" {`, stanza, 1)
	job, err := s.clean.Jobs().ParseHCL(file, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.clean.Jobs().Register(job, s.write()); err != nil { // without one
		t.Fatal(err)
	}
	id := driver.JobID(*job.ID + "@" + s.ns)
	seen := s.started(t, id)
	s.drives(t, s.intent(seen, "moved", driver.Change{MemoryBytes: 200 << 20}), driver.StepStarted)
	sub, _, err := s.clean.Jobs().Submission(*job.ID, int(*s.nomadJob(t, id).Version), s.read()) //nolint:gosec // a small number
	if err != nil || sub.Format != "json" || !strings.Contains(sub.Source, `"MemoryMB": 200`) {
		t.Errorf("submission %+v (%v), want the version's own as JSON", sub, err)
	}
}

func preserved(t *testing.T, s *story) {
	id, job := s.runs(t, mover(long), nil)
	own := job.Fingerprint
	s.drives(t, s.intent(job, "more", driver.Change{MemoryBytes: 200 << 20}), driver.StepStarted)
	s.wait(t, id, "the second attempt runs", func(j driver.Job) bool { return running(j) && j.Attempt == 2 })
	file := strings.Replace(s.file(t, mover(long)), `    task "main" {`, stanza, 1)
	again, err := s.clean.Jobs().ParseHCL(file, true)
	if err != nil {
		t.Fatal(err)
	}
	done(t)(s.clean.Jobs().RegisterOpts(again, &api.RegisterOptions{PreserveResources: true}, s.write()))
	if mib := *s.nomadJob(t, id).TaskGroups[0].Tasks[0].Resources.MemoryMB; mib != 200 {
		t.Skipf("this Nomad does not preserve resources: %d MiB", mib)
	}
	got := s.wait(t, id, "the third attempt runs", func(j driver.Job) bool { return running(j) && j.Attempt == 3 })
	if got.Fingerprint != own || got.Resources.MemoryBytes != 128<<20 || got.Change.MemoryBytes != 200<<20 || got.Attempts[2].Cause != driver.CauseSubmitted {
		t.Errorf("own %d bytes, changed to %d, fingerprint the same: %v, cause %s; want 128 MiB of its owner and 200 MiB of ours",
			got.Resources.MemoryBytes, got.Change.MemoryBytes, got.Fingerprint == own, got.Attempts[2].Cause)
	}
	s.works(t, id)
	s.drives(t, s.intent(got, "back", driver.Change{}), driver.StepStarted)
	if mib := *s.nomadJob(t, id).TaskGroups[0].Tasks[0].Resources.MemoryMB; mib != 128 {
		t.Errorf("%d MiB, want the owner's again", mib)
	}
}

func tagged(t *testing.T, s *story) {
	id, job := s.runs(t, mover(long), nil)
	if _, err := s.clean.Jobs().TagVersion("conformance", 0, "orig", "", s.write()); err != nil {
		t.Fatal(err)
	}
	s.drives(t, s.intent(job, "moved", driver.Change{TimeLimit: time.Hour}), driver.StepStarted)
	if now := s.nomadJob(t, id); now.VersionTag != nil || *now.Version != 1 {
		t.Errorf("version %d with the tag %+v, want the next without", *now.Version, now.VersionTag)
	}
}

func lonelyChild(t *testing.T, s *story) {
	_, id := s.periodic(t, "prohibit_overlap = true")
	s.wantRefused(t, s.started(t, id).ID, "prohibits overlap")
}

// periodic registers a periodic job and returns it and its first child.
func (s *story) periodic(t *testing.T, overlap string) (parent, id driver.JobID) {
	t.Helper()
	parent = s.register(t, mover(long), func(file string) string {
		return strings.Replace(file, `group "g" {`, "periodic {\n    crons = [\"0 0 1 1 *\"]\n    "+overlap+"\n  }\n  group \"g\" {", 1)
	})
	s.wantRefused(t, parent, "each of which is its own job")
	name := strings.TrimSuffix(string(parent), "@"+s.ns)
	done(t)(s.clean.Jobs().PeriodicForce(name, s.write()))
	eventually(t, "the child is seen", func() bool {
		jobs, err := s.d.List(t.Context())
		for _, j := range jobs {
			if strings.HasPrefix(string(j.ID), name+"/periodic-") { // a name with a slash in it
				id = j.ID
			}
		}
		return err == nil && id != ""
	})
	return parent, id
}

func periodicChild(t *testing.T, s *story) {
	parent, id := s.periodic(t, "")
	job := s.started(t, id)
	before := *s.nomadJob(t, parent).JobModifyIndex
	s.drives(t, s.intent(job, "moved", driver.Change{TimeLimit: time.Hour}), driver.StepStarted)
	if got := s.wait(t, id, "its second attempt", func(j driver.Job) bool { return j.Attempt == 2 }); got.Change.TimeLimit != time.Hour {
		t.Errorf("change %+v", got.Change)
	}
	if after := s.nomadJob(t, parent); *after.JobModifyIndex != before || after.TaskGroups[0].MaxRunDuration != nil {
		t.Error("the parent was changed")
	}
}

func standardError(t *testing.T, s *story) {
	id := s.register(t, drivertest.Behaviour{Epochs: 1, ExitCode: 1}, func(file string) string {
		return regexp.MustCompile(`args    = .*`).ReplaceAllString(regexp.MustCompile(`command = .*`).ReplaceAllString(file, `command = "/bin/sh"`),
			`args    = ["-c", "echo ValueError >&2; echo epoch 1/3; exit 1"]`)
	})
	s.wait(t, id, "it has failed", ended)
	eventually(t, "both are shown", func() bool { return slices.Equal(s.found(t, id, `(?m)^(.+)$`), []string{"epoch 1/3", "ValueError"}) })
	for offset, want := range map[int64]string{10: "ValueError\n", 12: "lueError\n", 21: ""} {
		in, err := s.d.Logs(t.Context(), id, offset)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err = errors.Join(err, in.Close()); err != nil || string(text) != want {
			t.Errorf("from byte %d on: %q (%v), want %q", offset, text, err, want)
		}
	}
}

func restartInPlace(t *testing.T, s *story) {
	id := s.register(t, mover(long), nil)
	s.epochs(t, id, 2)
	s.wait(t, id, "it runs", running)
	alloc := s.allocs(t, id)[0].ID
	if err := s.clean.Allocations().Restart(&api.Allocation{ID: alloc}, "main", s.read()); err != nil {
		t.Fatal(err)
	}
	s.sameAttempt(t, id, alloc)
}

// sameAttempt waits until the task of the allocation was started a second time, and
// fails the test unless that is the same attempt, which can be moved like any other.
func (s *story) sameAttempt(t *testing.T, id driver.JobID, alloc string) {
	t.Helper()
	eventually(t, "its task is started again", func() bool {
		list := s.allocs(t, id)
		return len(list) == 1 && list[0].TaskStates["main"].Restarts > 0 && list[0].TaskStates["main"].State == "running"
	})
	job := s.wait(t, id, "it runs", running)
	if len(job.Attempts) != 1 || job.Attempts[0].Unit != alloc+".main" || job.Attempts[0].Cause != driver.CauseSubmitted {
		t.Errorf("attempts %+v, want one", job.Attempts)
	}
	s.works(t, id)
	s.drives(t, s.intent(job, "moved", driver.Change{TimeLimit: time.Hour}), driver.StepStarted)
}

func variableTemplate(t *testing.T, s *story) {
	path := "nomad/jobs/conformance"
	put := func(batch string) {
		t.Helper()
		done(t)(s.clean.Variables().Update(&api.Variable{Namespace: s.ns, Path: path, Items: api.VariableItems{"batch": batch}}, s.write()))
	}
	put("32")
	id := s.register(t, mover(long), func(file string) string {
		return strings.Replace(file, `kill_timeout = "1s"`, `kill_timeout = "1s"
      template {
        data        = "{{ with nomadVar \"`+path+`\" }}BATCH_SIZE={{ .batch }}{{ end }}"
        destination = "local/tuned.env"
        env         = true
        splay       = "0s"
      }`, 1)
	})
	s.epochs(t, id, 2)
	s.wait(t, id, "it runs", running)
	alloc := s.allocs(t, id)[0].ID
	put("64")
	s.sameAttempt(t, id, alloc)
}

func listensToFile(t *testing.T, s *story) {
	const old = 100000 // bytes of what was in the file before
	heard := make(chan string, 1)
	if err := s.d.Close(); err != nil {
		t.Fatal(err)
	}
	s.cfg.Listen = func(_ context.Context, _, _ string, _ driver.Progress, output io.Reader) error {
		before, err := io.ReadAll(io.LimitReader(output, old))
		err = errors.Join(err, os.WriteFile(filepath.Join(s.dir, "heard"), nil, 0o600))
		now, failed := io.ReadAll(output)
		heard <- string(before) + string(now)
		return errors.Join(err, failed)
	}
	s.open(t)
	s.proxy.set(func(p *proxy) {
		p.answer = func(r *http.Response) error {
			if path := r.Request.URL.Path; strings.Contains(path, "/fs/stat/") || strings.Contains(path, "/fs/readat/") {
				return os.WriteFile(filepath.Join(s.dir, "asked"), nil, 0o600)
			}
			return nil
		}
	})
	id := s.register(t, drivertest.Behaviour{Epochs: long, Epoch: epoch}, func(file string) string {
		// What the task writes goes to a file of the allocation that is not there at first, and is written anew later.
		script := fmt.Sprintf(`file() { until [ -e %s/$1 ]; do sleep 0.1; done; }; file asked; head -c %d /dev/zero >local/progress; file heard; "$0" "$@" >local/progress`, s.dir, old)
		return strings.Replace(strings.Replace(file, `command = "`, `command = "/bin/sh"`+"\n        # ", 1), "args    = [", fmt.Sprintf("args    = [\"-c\", %q, %q, ", script, programOf(t)), 1)
	})
	s.wait(t, id, "it runs", running)
	if err := s.d.Listen(t.Context(), id, 1, driver.Progress{File: "${NOMAD_TASK_DIR}/progress"}); err != nil {
		t.Fatal(err)
	}
	s.finish(t, id)
	select {
	case text := <-heard:
		rest, ok := strings.CutPrefix(text, strings.Repeat("\x00", old))
		if n := strings.Count(rest, "epoch "); n != long || !ok {
			t.Errorf("%d epochs heard behind what was there before (%v), want %d", n, ok, long)
		}
	case <-time.After(drivertest.Patience):
		t.Fatal("the reader does not end with the attempt")
	}
}

func programOf(t *testing.T) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// What a newer Nomad may show, and what is empty and therefore no loss.
func TestUnknownSettingsAreNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"ID":"x","Meta":{"a":"b"},"TaskGroups":[{"Name":"g","Tasks":[{"Name":"t","Config":{"deep":[{"er":1}]}}]}]}`: "",
		`{"ID":"x","New":null,"Newer":[],"Newest":{"Deep":{"er":""}},"N":0,"B":false}`:                                "",
		`{"id":"x"}`:                           "",
		`{"ID":"x","New":"text"}`:              "New",
		`{"Job":{"ID":"x","New":1},"Outer":1}`: "New",
		`{"ID":"x","TaskGroups":[{"Name":"g"},{"Name":"h","Tasks":[{"Name":"t","New":{"Deep":1}}]}]}`: "TaskGroups.Tasks.New",
	} {
		if _, unknown, err := spec.Read([]byte(text)); err != nil || unknown != want {
			t.Errorf("%s: %q (%v), want %q", text, unknown, err, want)
		}
	}
	if _, _, err := spec.Read([]byte("{")); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("broken JSON: %v", err)
	}
}

// What an agent of the same version shows is known, whatever the job file has in it.
func TestNothingOfAShippedJobFileIsUnknown(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../jobspecs/nomad/*.hcl")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d job files (%v)", len(files), err)
	}
	nomadagent.Both(t, nomadagent.Options{}, func(t *testing.T, a *nomadagent.Agent) {
		client := a.Client(t)
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			job, err := client.Jobs().ParseHCL(carried(t, file, src), true)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			// It is not to run.
			job.Constraints = append(job.Constraints, &api.Constraint{LTarget: "${node.unique.id}", RTarget: "none", Operand: "="})
			if _, _, err := client.Jobs().Register(job, nil); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			_, text, err := a.Do(t.Context(), http.MethodGet, "/v1/job/"+*job.ID, "")
			if err != nil {
				t.Fatal(err)
			}
			if _, unknown, err := spec.Read([]byte(text)); err != nil || unknown != "" {
				t.Errorf("%s: %q is not known (%v)", file, unknown, err)
			}
		}
	})
}

func carried(t *testing.T, file string, src []byte) string {
	t.Helper()
	out, _ := nomadhcl.ForAgent(file, src)
	return string(out)
}
