package spec_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/nomadhcl"
	"pitchpipe/driver/jobfile/nomadjson"
	"pitchpipe/driver/nomad/spec"
)

func TestATuningBlockIsCarriedIntoTheScalingPolicy(t *testing.T) {
	t.Parallel()
	const file = `job "train" {
  type = "batch"
  tuning {
    mode = "apply"
    knob "cores" { values = [1, 2] }
    knob "rate" {
      arg = "--rate"
      min = 0.5
      max = 4
      log = true
    }
    budget { probes = 4 }
  }
  group "g" {
    task "main" { driver = "exec" }
  }
}`
	was, err := nomadhcl.ParseForNomad("train.hcl", []byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	job := batch()
	job.TaskGroups[0].Count = new(3)
	if err := spec.Carry(job, "", was.Stanza); err != nil {
		t.Fatal(err)
	}
	if s := job.TaskGroups[0].Scaling; *s.Enabled || *s.Min != 3 || *s.Max != 3 {
		t.Errorf("scaling %+v, want one that changes nothing", s)
	}
	data, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	is, err := nomadjson.Parse("train.json", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	byName := cmpopts.SortSlices(func(a, b jobfile.Attr) bool { return a.Name < b.Name })
	byLabel := cmpopts.SortSlices(func(a, b *jobfile.Block) bool { return a.Type+a.Label < b.Type+b.Label })
	if diff := cmp.Diff(was.Stanza, is.Stanza, cmpopts.IgnoreTypes(jobfile.Pos{}), byName, byLabel); diff != "" {
		t.Errorf("(-user's +carried):\n%s", diff)
	}
	own := &api.ScalingPolicy{Max: new(int64(5)), Policy: map[string]any{"cooldown": "1m"}}
	job.TaskGroups[0].Scaling = own
	if err := spec.Carry(job, "train", was.Stanza); err == nil {
		t.Error("carried to a group that is not there")
	}
	if err := spec.Carry(job, *job.TaskGroups[0].Name, was.Stanza); err != nil || own.Policy["tuning"] == nil || own.Policy["cooldown"] != "1m" {
		t.Errorf("%v: policy %+v, want the owner's and the stanza", err, own.Policy)
	}
}
