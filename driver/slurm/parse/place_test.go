package parse_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver/slurm/parse"
)

const places = "n1|main|up|mixed|\nn1|long|down|draining@|\nn2|main|up|idle*|\nn3|main|drain|allocated-|\n"

func TestWhereANodeIsAndWhetherItTakesJobs(t *testing.T) {
	t.Parallel()
	got, err := parse.Places([]byte(places))
	want := []parse.Place{
		{Node: "n1", Partition: "main", Up: true, Open: true},
		{Node: "n1", Partition: "long"},
		{Node: "n2", Partition: "main", Up: true},
		{Node: "n3", Partition: "main", Open: true},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"n1|main|up|", "n1||up|idle|", "n1|main|up|idle|x|"} {
		if got, err := parse.Places([]byte(bad)); !errors.Is(err, parse.ErrFormat) {
			t.Errorf("%q: %+v (%v), want an error", bad, got, err)
		}
	}
}

const frees = "n1|mixed|3/5/0/8|2|16384|500|\nn2|idle|0/4/0/4|1|8192|0|\nn3|drained|0/0/4/4|1|8192|0|\nn4|idle*|0/4/0/4|1|8192|0|\n"

func TestWhatNoJobHasOfANodeIsInWholeCores(t *testing.T) {
	t.Parallel()
	got, err := parse.Frees([]byte(frees))
	want := []parse.Free{{Node: "n1", CPUs: 4, MemoryBytes: 15884 << 20}, {Node: "n2", CPUs: 4, MemoryBytes: 8192 << 20}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"n1|idle|0/4/0/4|1|8192", "|idle|0/4/0/4|1|8192|0|", "n1|idle|4|1|8192|0|", "n1|idle|0/4/0/4|x|8192|0|", "n1|idle|0/4/0/4|1|8192|-1|"} {
		if got, err := parse.Frees([]byte(bad)); !errors.Is(err, parse.ErrFormat) {
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

func FuzzPlaces(f *testing.F) {
	f.Add(places)
	f.Add(waits)
	f.Add(frees)
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parse.Places([]byte(s))
		for _, p := range got {
			if err == nil && (p.Node == "" || p.Partition == "") {
				t.Errorf("an impossible place: %+v", p)
			}
		}
		frees, err := parse.Frees([]byte(s))
		if err != nil && (!errors.Is(err, parse.ErrFormat) || frees != nil) {
			t.Errorf("%+v: %v", frees, err)
		}
		waits, err := parse.Waits([]byte(s))
		if err != nil && (!errors.Is(err, parse.ErrFormat) || waits != nil) {
			t.Errorf("%+v: %v", waits, err)
		}
	})
}
