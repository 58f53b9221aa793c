package nomad_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	"pitchpipe/controller/daemon/api"
)

// batchEpochs are those of a dispatched job: enough for a profile.
const batchEpochs = 6

// The batch is submitted once and dispatched for each input. Nomad lets no one change
// what was dispatched: each is measured and says what would have been better, and where
// its owner wants more than that it is refused, with the reason. None is touched.
func TestTheDispatchedBatchIsMeasuredAndToldWhyItIsNotChanged(t *testing.T) {
	if !*all {
		t.Skip("it takes minutes; make e2e-nomad runs it")
	}
	if err := noTorch(); err != nil {
		t.Skip(err)
	}
	s := newStage(t)
	file := s.path("jobspecs", "nomad", "digits-batch.nomad.hcl")
	args := []string{"run", "--var", "script=" + s.path("jobspecs", "slurm", "digits.py"), "--var", fmt.Sprintf("epochs=%d", batchEpochs)}
	id := s.run(append(args, file)...)
	if id != "digits-batch" {
		t.Fatalf("job %q", id)
	}
	first := s.dispatch(id, "1")
	one := s.untouched(first)
	if story := s.run("explain", "-v", first); one.Epoch != batchEpochs || one.Reason == "" || !strings.Contains(story, one.Sentence) {
		t.Errorf("%d epochs, reason %q, and its story is\n%s", one.Epoch, one.Reason, story)
	}
	// The same with an owner who wants it changed, and who comes again: the memory that
	// it did not use could be given up while it waits.
	if _, _, err := s.nomad.Jobs().Deregister(id, false, nil); err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(src), `"recommend"`, `"apply"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.await("the batch to be submitted again", func() error {
		cmd := s.command(t.Context(), append(args, file)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	free := s.occupy()
	second := s.dispatch(id, "2")
	s.await("the reason for which it is not changed", func() error {
		j, err := s.client.Job(t.Context(), second)
		if err == nil && (j.Reason == "" || j.Recalled) {
			err = fmt.Errorf("phase %s, %q", j.Phase, j.Reason)
		}
		return err
	})
	free()
	two := s.untouched(second)
	story := s.run("explain", "-v", second)
	const why = "a dispatched job cannot be changed, Nomad refuses it; tune its parameterized parent, which later dispatches follow"
	// On a machine that has no figure of its memory there is nothing that could be given up.
	if s.peak(t.Context(), "digits-batch") > 0 && !strings.Contains(story, why) {
		t.Errorf("its story does not say that %s:\n%s", why, story)
	}
	fmt.Fprintf(&report, "On %s: digits-batch dispatched twice, %d and %d epochs, neither touched (%s, %s).\n", s.agent.Name(), one.Epoch, two.Epoch, one.Reason, two.Reason)
}

// dispatch starts a job of the batch as its user does.
func (s *stage) dispatch(id, input string) string {
	s.t.Helper()
	got, _, err := s.nomad.Jobs().Dispatch(id, map[string]string{"input": input}, nil, "", &nomadapi.WriteOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return got.DispatchedJobID
}

// untouched waits for the end of a job that may not have been changed.
func (s *stage) untouched(id string) api.Job {
	s.t.Helper()
	j := s.through(id, time.Time{})
	if list := s.allocations(id); j.State != "succeeded" || len(list) != 1 || j.Attempt != 1 || j.Restarts+j.Probes != 0 || !j.Current.Equal(j.Own) {
		s.t.Errorf("%s: %s, %d allocations, %d attempts, %d restarts, %d probes, %s of %s; want it as its owner wrote it", id, j.State, len(list), j.Attempt, j.Restarts, j.Probes, j.Current, j.Own)
	}
	return j
}

// peak is the largest memory of a kind of jobs as far as it is known.
func (s *stage) peak(ctx context.Context, kind string) int64 {
	s.t.Helper()
	known, err := s.client.Knowledge(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, k := range known.Kinds {
		if strings.Contains(k.Kind, kind) {
			return int64(k.Peak)
		}
	}
	text, _ := json.Marshal(known.Kinds)
	s.t.Errorf("nothing was learned of %s: %s", kind, text)
	return 0
}
