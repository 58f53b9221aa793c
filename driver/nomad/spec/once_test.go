package spec_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
)

func TestAWrappedJobIsUnwrappedAsItWas(t *testing.T) {
	t.Parallel()
	job, err := spec.Clone(work("a", "raw_exec", "true")) // as JSON has it
	if err != nil {
		t.Fatal(err)
	}
	was, err := spec.Clone(job)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"run-1", "run-2"} { // twice is once
		if warnings, err := spec.Once(job, run); err != nil || len(warnings) > 0 {
			t.Fatalf("%q, %v", warnings, err)
		}
		if args, _ := job.TaskGroups[0].Tasks[0].Config["args"].([]string); !spec.Wrapped(job) || !slices.Contains(args, run) {
			t.Errorf("%q, want the run %q", args, run)
		}
	}
	if d := job.TaskGroups[0].EphemeralDisk; d == nil || !*d.Sticky || !*d.Migrate {
		t.Errorf("ephemeral disk %+v, want it to follow", d)
	}
	spec.Unwrap(job.TaskGroups[0].Tasks[0])
	job.TaskGroups[0].EphemeralDisk = nil
	if spec.Wrapped(job) {
		t.Error("it is still marked")
	}
	got, err := spec.Clone(job)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(was, got); diff != "" {
		t.Errorf("(-was +is):\n%s", diff)
	}
}

func TestWhatCannotBeWrappedIsLeftAlone(t *testing.T) {
	t.Parallel()
	two := work("a", "raw_exec", "true")
	two.AddTaskGroup(api.NewTaskGroup("h", 1))
	image := work("a", "docker", "true")
	image.TaskGroups[0].Tasks[0].Config = map[string]any{"image": "x"}
	for name, job := range map[string]*api.Job{"two groups": two, "an image": image, "an unknown driver": work("a", "java", "true")} {
		was, err := spec.Clone(job)
		if err != nil {
			t.Fatal(err)
		}
		warnings, err := spec.Once(job, "r")
		if err != nil || len(warnings) != 1 {
			t.Errorf("%s: %q, %v, want a warning", name, warnings, err)
		}
		if is, err := spec.Clone(job); err != nil || cmp.Diff(was, is) != "" {
			t.Errorf("%s: changed (%v):\n%s", name, err, cmp.Diff(was, is))
		}
	}
	if _, err := spec.Once(work("a", "raw_exec", "true"), "no/name"); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("a run without a usable name: %v", err)
	}
}
