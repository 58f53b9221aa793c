package facts_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadagent"
)

func TestVersions(t *testing.T) {
	hold(t, nomadagent.Options{}, []fact{
		{"six versions are kept, and the tagged ones beside them", sixVersions, both},
		{"a tag moves ModifyIndex and not JobModifyIndex", tagMovesModifyIndex, both},
		{"a tagged job that is read back and registered makes a new version in place", taggedReadBack, both},
		{"a tag is given once", tagOnce, both},
		{"a tag is taken away once", untagOnce, realAgent},
		{"reverting checks the version that it is to leave", revertPrior, both},
		{"reverting makes a new version of the old specification, and to what runs it restarts nothing", revertRestartsNothing, both},
		{"the source of each version is kept as it came", sources, both},
		{"a version without a source answers with that of the version that its request names", staleSource, both},
		{"a scaling event without a count is a line in the audit and nothing else", audit, realAgent},
		{"the body of a scaling policy comes back as it went in", policyBody, both},
		{"the policy of a job is listed, and keeps its id", policyList, realAgent},
		{"lists filter by meta without showing it", filters, realAgent},
		{"the summary counts", summaries, both},
	})
}

func versionsOf(t *testing.T, c cluster) []uint64 {
	t.Helper()
	list, _, _, err := c.Jobs().Versions(c.id, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []uint64
	for _, j := range list {
		out = append(out, *j.Version)
	}
	return out
}

func sixVersions(t *testing.T, c cluster) {
	j := c.job("true")
	j.TaskGroups[0].Count = new(0)
	c.registerWith(t, j, &api.RegisterOptions{Submission: &api.JobSubmission{Source: "v0", Format: "hcl2"}})
	if _, err := c.Jobs().TagVersion(c.id, 0, "orig", "as it came", nil); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		j.Priority = new(60 + i)
		c.registerWith(t, j, &api.RegisterOptions{Submission: &api.JobSubmission{Source: "more", Format: "hcl2"}})
	}
	if diff := cmp.Diff([]uint64{8, 7, 6, 5, 4, 3, 0}, versionsOf(t, c)); diff != "" {
		t.Error(diff)
	}
	_, _, err := c.Jobs().Revert(c.id, 2, nil, nil, "", "")
	refused(t, err, 500, "version 2 not found")
	_, _, err = c.Jobs().Submission(c.id, 0, nil)
	refused(t, err, 404, "job source not found")
	if _, _, err := c.Jobs().Revert(c.id, 0, nil, nil, "", ""); err != nil {
		t.Errorf("reverting to the tagged version: %v", err)
	}
	if now := c.read(t); *now.Priority != 50 || *now.Version != 9 || now.VersionTag != nil {
		t.Errorf("priority %d, version %d, tag %v", *now.Priority, *now.Version, now.VersionTag)
	}
}

func tagMovesModifyIndex(t *testing.T, c cluster) {
	j := c.job(lasting)
	c.runs(t, j)
	before := c.awaitStatus(t, "running")
	if _, err := c.Jobs().TagVersion(c.id, 0, "orig", "", nil); err != nil {
		t.Fatal(err)
	}
	after := c.read(t)
	if *after.JobModifyIndex != *before.JobModifyIndex || *after.ModifyIndex <= *before.ModifyIndex || *after.Version != 0 {
		t.Errorf("JobModifyIndex %d after %d, ModifyIndex %d after %d", *after.JobModifyIndex, *before.JobModifyIndex,
			*after.ModifyIndex, *before.ModifyIndex)
	}
	if after.VersionTag == nil || after.VersionTag.Name != "orig" {
		t.Errorf("the tag is %+v", after.VersionTag)
	}
}

func taggedReadBack(t *testing.T, c cluster) {
	first := c.runs(t, c.job(lasting))
	if _, err := c.Jobs().TagVersion(c.id, 0, "orig", "", nil); err != nil {
		t.Fatal(err)
	}
	reg := c.register(t, c.job(lasting))
	c.awaitEval(t, reg.EvalID)
	if v := *c.read(t).Version; v != 1 {
		t.Errorf("version %d, want 1", v)
	}
	if list := c.allocs(t); len(list) != 1 || list[0].ID != first.ID {
		t.Errorf("there are %d allocations", len(list))
	}
}

func tagOnce(t *testing.T, c cluster) {
	j := c.job("true")
	j.TaskGroups[0].Count = new(0)
	c.register(t, j)
	j.Priority = new(60)
	c.register(t, j)
	if _, err := c.Jobs().TagVersion(c.id, 0, "orig", "", nil); err != nil {
		t.Fatal(err)
	}
	_, err := c.Jobs().TagVersion(c.id, 1, "orig", "", nil)
	refused(t, err, 500, `tag "orig" already exists on a different version of job`)
	_, err = c.Jobs().TagVersion(c.id, 9, "none", "", nil)
	refused(t, err, 500, "version 9 not found")
}

func untagOnce(t *testing.T, c cluster) {
	c.register(t, c.job("true"))
	if _, err := c.Jobs().TagVersion(c.id, 0, "orig", "", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Jobs().UntagVersion(c.id, "orig", nil); err != nil {
		t.Error(err)
	}
	_, err := c.Jobs().UntagVersion(c.id, "orig", nil)
	refused(t, err, 500, `tag "orig" not found on job`)
}

func revertPrior(t *testing.T, c cluster) {
	j := c.job("true")
	j.TaskGroups[0].Count = new(0)
	c.register(t, j)
	j.Priority = new(60)
	c.register(t, j)
	_, _, err := c.Jobs().Revert(c.id, 0, new(uint64(7)), nil, "", "")
	refused(t, err, 500, "Current job has version 1; enforcing version 7")
	_, _, err = c.Jobs().Revert(c.id, 1, nil, nil, "", "")
	refused(t, err, 500, "can't revert to current version")
	if _, _, err := c.Jobs().Revert(c.id, 0, new(uint64(1)), nil, "", ""); err != nil {
		t.Error(err)
	}
	if now := c.read(t); *now.Version != 2 || *now.Priority != 50 {
		t.Errorf("version %d, priority %d", *now.Version, *now.Priority)
	}
}

func revertRestartsNothing(t *testing.T, c cluster) {
	j := c.job(lasting)
	first := c.runs(t, j)
	j.Priority = new(60)
	c.register(t, j)
	out := must[*api.JobRegisterResponse](t)(c.Jobs().Revert(c.id, 0, nil, nil, "", ""))
	c.awaitEval(t, out.EvalID)
	if list := c.allocs(t); len(list) != 1 || list[0].ID != first.ID || list[0].DesiredStatus != "run" {
		t.Errorf("there are %d allocations", len(list))
	}
}

func sources(t *testing.T, c cluster) {
	j := c.job("true")
	j.TaskGroups[0].Count = new(0)
	for i, text := range []string{"first # ü", "second"} {
		j.Priority = new(60 + i)
		c.registerWith(t, j, &api.RegisterOptions{Submission: &api.JobSubmission{
			Source: text, Format: "hcl2", VariableFlags: map[string]string{"a": "b"}, Variables: "x = 1",
		}})
		got := must[*api.JobSubmission](t)(c.Jobs().Submission(c.id, i, nil))
		want := &api.JobSubmission{Source: text, Format: "hcl2", VariableFlags: map[string]string{"a": "b"}, Variables: "x = 1"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func staleSource(t *testing.T, c cluster) {
	j := c.job("true")
	j.TaskGroups[0].Count = new(0)
	c.registerWith(t, j, &api.RegisterOptions{Submission: &api.JobSubmission{Source: "v0", Format: "hcl2"}})
	j.Priority = new(60)
	c.registerWith(t, j, &api.RegisterOptions{Submission: &api.JobSubmission{Source: "v1", Format: "hcl2"}})
	read := c.read(t) // it names version 1
	read.Priority = new(61)
	c.register(t, read)
	j.Priority = new(62) // it names no version
	c.register(t, j)
	for version, want := range []string{"v0", "v1", "v1", "v0"} {
		got, _, err := c.Jobs().Submission(c.id, version, nil)
		if err != nil {
			t.Errorf("version %d: %v", version, err)
		} else if got.Source != want {
			t.Errorf("version %d has the source %q, want %q", version, got.Source, want)
		}
	}
}

func scaled(j *api.Job) *api.Job {
	j.TaskGroups[0].Scaling = &api.ScalingPolicy{
		Enabled: new(false), Min: new(int64(0)), Max: new(int64(1)),
		Policy: map[string]any{"tuning": []any{map[string]any{"mode": "apply", "knob": []any{map[string]any{"cores": []any{map[string]any{"values": []any{1.0, 2.0}}}}}}}},
	}
	return j
}

func audit(t *testing.T, c cluster) {
	c.runs(t, scaled(c.job(lasting)))
	before := c.awaitStatus(t, "running")
	if _, _, err := c.Jobs().Scale(c.id, "g", nil, "cores 2 -> 1", false, map[string]any{"by": "test"}, nil); err != nil {
		t.Fatal(err)
	}
	st := must[*api.JobScaleStatusResponse](t)(c.Jobs().ScaleStatus(c.id, nil))
	list := st.TaskGroups["g"].Events
	if len(list) != 1 || list[0].Message != "cores 2 -> 1" || list[0].Count != nil || list[0].Meta["by"] != "test" || list[0].EvalID != nil {
		t.Errorf("the events are %+v", list)
	}
	after := c.read(t)
	if *after.Version != 0 || *after.JobModifyIndex != *before.JobModifyIndex || len(c.allocs(t)) != 1 {
		t.Errorf("version %d", *after.Version)
	}
}

func policyBody(t *testing.T, c cluster) {
	j := scaled(c.job(lasting))
	j.TaskGroups[0].Count = new(0)
	c.register(t, j)
	want := j.TaskGroups[0].Scaling.Policy
	got := c.read(t).TaskGroups[0].Scaling
	if diff := cmp.Diff(want, got.Policy); diff != "" {
		t.Error(diff)
	}
}

func policyList(t *testing.T, c cluster) {
	j := scaled(c.job(lasting))
	j.TaskGroups[0].Count = new(0)
	c.register(t, j)
	want := j.TaskGroups[0].Scaling.Policy
	list := must[[]*api.ScalingPolicyListStub](t)(c.Scaling().ListPolicies(&api.QueryOptions{Params: map[string]string{"job": c.id}}))
	if len(list) != 1 || list[0].Enabled || list[0].Target["Job"] != c.id || list[0].Target["Group"] != "g" {
		t.Fatalf("the list is %+v", list)
	}
	p := must[*api.ScalingPolicy](t)(c.Scaling().GetPolicy(list[0].ID, nil))
	if diff := cmp.Diff(want, p.Policy); diff != "" {
		t.Error(diff)
	}
	j.Priority = new(60)
	c.register(t, j)
	again := must[[]*api.ScalingPolicyListStub](t)(c.Scaling().ListPolicies(&api.QueryOptions{Params: map[string]string{"job": c.id}}))
	if len(again) != 1 || again[0].ID != list[0].ID {
		t.Error("the policy of the next version has another id")
	}
}

func filters(t *testing.T, c cluster) {
	j := c.job("true")
	j.TaskGroups[0].Count = new(0)
	j.Meta = map[string]string{"tune.enabled": "true", "of": c.id}
	c.register(t, j)
	o := c.other(t, "plain")
	plain := o.job("true")
	plain.TaskGroups[0].Count = new(0)
	o.register(t, plain)
	for filter, want := range map[string]int{
		`Meta["tune.enabled"] == "true"`:                          1,
		`Meta["tune.enabled"] == "false"`:                         0,
		`"tune.enabled" in Meta`:                                  1,
		`"tune.enabled" not in Meta`:                              1,
		`Meta is not empty`:                                       1,
		`Type == "batch" and not "tune.enabled" in Meta`:          1,
		`Meta["tune.enabled"] == "true" or Meta is empty`:         2,
		`Type == "service"`:                                       0,
		`ID matches "plain$"`:                                     1,
		`(Priority == 50) and ID == "` + c.id + `" `:              1,
		`Status != "nope"`:                                        2,
		`"tune.enabled" in Meta and Meta["of"] == "` + c.id + `"`: 1,
	} {
		list, _, err := c.Jobs().ListOptions(&api.JobListOptions{Fields: &api.JobListFields{Meta: true}},
			&api.QueryOptions{Filter: filter, Prefix: c.id})
		if err != nil {
			t.Errorf("%s: %v", filter, err)
		} else if len(list) != want {
			t.Errorf("%s: %d jobs, want %d", filter, len(list), want)
		}
	}
	list := must[[]*api.JobListStub](t)(c.Jobs().List(&api.QueryOptions{Filter: `"tune.enabled" in Meta`, Prefix: c.id}))
	if len(list) != 1 || list[0].Meta != nil {
		t.Errorf("without meta=true there are %d jobs", len(list))
	}
	_, _, err := c.Jobs().List(&api.QueryOptions{Filter: `Meta ==`, Prefix: c.id})
	refused(t, err, 400, "")
	_, _, err = c.Jobs().List(&api.QueryOptions{Filter: `Nothing == "x"`, Prefix: c.id})
	refused(t, err, 400, "")
}

func summaries(t *testing.T, c cluster) {
	j := c.job("true")
	c.register(t, j)
	c.awaitAllocs(t, "complete")
	s := must[*api.JobSummary](t)(c.Jobs().Summary(c.id, nil))
	if diff := cmp.Diff(map[string]api.TaskGroupSummary{"g": {Complete: 1}}, s.Summary); diff != "" {
		t.Error(diff)
	}
}
