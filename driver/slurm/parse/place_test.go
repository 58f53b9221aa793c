package parse_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver/slurm/parse"
)

const nodes = "n1|main|up|mixed|3/5/0/8|2|16384|500|\nn1|long|down|draining@|3/5/0/8|2|16384|500|\nn2|main|up|idle*|0/4/0/4|1|8192|0|\nn3|main|drain|allocated-|4/0/0/4|1|8192|8192|\n"

func TestWhatANodeHasAndWhetherItTakesJobs(t *testing.T) {
	t.Parallel()
	got, err := parse.Nodes([]byte(nodes))
	want := []parse.Node{
		{Name: "n1", Partition: "main", Up: true, Open: true, CPUs: 8, Idle: 4, Memory: 16384 << 20, Free: 15884 << 20},
		{Name: "n1", Partition: "long", CPUs: 8, Idle: 4, Memory: 16384 << 20, Free: 15884 << 20},
		{Name: "n2", Partition: "main", Up: true, CPUs: 4, Idle: 4, Memory: 8192 << 20, Free: 8192 << 20},
		{Name: "n3", Partition: "main", Open: true, CPUs: 4, Memory: 8192 << 20},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{
		"n1|main|up|idle|0/4/0/4|1|8192|", "n1||up|idle|0/4/0/4|1|8192|0|", "|main|up|idle|0/4/0/4|1|8192|0|", "n1|main|up|idle|4|1|8192|0|",
		"n1|main|up|idle|0/4/0/4|x|8192|0|", "n1|main|up|idle|0/4/0/4|1|8192|-1|", "n1|main|up|idle|0/4/0/4|1|8192|0|x|",
	} {
		if got, err := parse.Nodes([]byte(bad)); !errors.Is(err, parse.ErrFormat) {
			t.Errorf("%q: %+v (%v), want an error", bad, got, err)
		}
	}
}

const waits = "7|7|N/A|Resources|bob|proj|normal|\n22|22|3|JobArrayTaskLimit|bob|(null)|N/A|\n"

func TestForWhatJobsWait(t *testing.T) {
	t.Parallel()
	got, err := parse.Waits([]byte(waits))
	want := []parse.Wait{
		{ID: "7", Reason: "Resources", User: "bob", Account: "proj", QOS: "normal"},
		{ID: "22_3", Reason: "JobArrayTaskLimit", User: "bob"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := parse.Waits([]byte("7|7|N/A|Resources\n")); !errors.Is(err, parse.ErrFormat) {
		t.Errorf("%+v (%v), want an error", got, err)
	}
	for reason, way := range map[string]parse.Way{
		"Resources": parse.Ahead, "Priority": parse.Ahead, "None": parse.Ahead, "Licenses": parse.Ahead, "ReqNodeNotAvail": parse.Ahead,
		"what a later version says": parse.Ahead, "Dependency": parse.Aside, "BeginTime": parse.Aside, "JobHeldUser": parse.Aside,
		"job_requeued_in_held_state": parse.Aside, "job requeued in held state": parse.Aside, "launch failed requeued held": parse.Aside,
		"launch_failed_requeued_held": parse.Aside, "JobArrayTaskLimit": parse.Turn, "AssocGrpCpuLimit": parse.Limited,
		"QOSMaxCpuPerUserLimit": parse.Limited, "AssociationJobLimit": parse.Limited,
	} {
		if got := (parse.Wait{Reason: reason}).Way(); got != way {
			t.Errorf("%q is %s, want %s", reason, got, way)
		}
	}
}

func TestWhoSharesTheLimitThatAJobWaitsFor(t *testing.T) {
	t.Parallel()
	job := parse.Job{Account: "proj", QOS: "normal", User: "alice"}
	for name, c := range map[string]struct {
		wait parse.Wait
		want bool
	}{
		"a limit of its account":              {parse.Wait{Reason: "AssocGrpCpuLimit", Account: "proj", QOS: "x", User: "bob"}, true},
		"a limit of another account":          {parse.Wait{Reason: "AssocGrpCpuLimit", Account: "other", QOS: "normal", User: "bob"}, false},
		"a limit of its QOS":                  {parse.Wait{Reason: "QOSGrpMemLimit", Account: "other", QOS: "normal", User: "bob"}, true},
		"a limit of another QOS":              {parse.Wait{Reason: "QOSGrpMemLimit", Account: "proj", QOS: "x", User: "bob"}, false},
		"what its QOS gives each other user":  {parse.Wait{Reason: "QOSMaxCpuPerUserLimit", Account: "proj", QOS: "normal", User: "bob"}, false},
		"what its QOS gives its own user":     {parse.Wait{Reason: "QOSMaxCpuPerUserLimit", Account: "proj", QOS: "normal", User: "alice"}, true},
		"what its account gives another user": {parse.Wait{Reason: "AssocMaxJobsLimit", Account: "proj", QOS: "normal", User: "bob"}, false},
	} {
		if got := c.wait.Shares(job); got != c.want {
			t.Errorf("%s: shared %t, want %t", name, got, c.want)
		}
	}
}

func FuzzNodes(f *testing.F) {
	f.Add(nodes)
	f.Add(waits)
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parse.Nodes([]byte(s))
		for _, n := range got {
			if err == nil && (n.Name == "" || n.Partition == "" || min(n.CPUs, n.Idle) < 0) {
				t.Errorf("an impossible node: %+v", n)
			}
		}
		waits, bad := parse.Waits([]byte(s))
		for _, err := range []error{err, bad} {
			if err != nil && !errors.Is(err, parse.ErrFormat) {
				t.Errorf("%+v: %v", waits, err)
			}
		}
	})
}
