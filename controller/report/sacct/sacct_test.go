package sacct_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pitchpipe/controller/report/sacct"
	"pitchpipe/test/fixtures"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestJobsWithTheirSteps(t *testing.T) {
	t.Parallel()
	const head = "JobID|User|Account|JobName|State|Elapsed|AllocCPUS|NNodes|TotalCPU|ReqMem|MaxRSS|NTasks\n"
	for _, c := range []struct {
		name, text string
		want       []sacct.Job
	}{
		{"none", head, nil},
		{
			"a job whose peak stands at its steps",
			head + "7|alice|physics|train|COMPLETED|01:00:00|4|1|02:30:00|16G||\n" +
				"7.batch||physics|batch|COMPLETED|01:00:00|4|1|00:00:01||100K|1\n" +
				"7.extern||physics|extern|COMPLETED|01:00:00|4|1|00:00.001||0|1\n" +
				"7.0||physics|solve|COMPLETED|00:59:00|4|1|02:29:59||2G|2\n",
			[]sacct.Job{{
				ID: "7", User: "alice", Account: "physics", Name: "train", State: "COMPLETED", Elapsed: new(time.Hour), CPUs: 4, Nodes: 1,
				CPU: new(150 * time.Minute), Asked: 16 << 30, Peak: 4 << 30,
			}},
		},
		{
			"a peak without a unit is in bytes, as --noconvert prints it",
			"JobID|ReqMem|MaxRSS|NTasks\n5|2048M||\n5.0|||1\n5.1||1073741824|2\n",
			[]sacct.Job{{ID: "5", Asked: 2 << 30, Peak: 2 << 30}},
		},
		{
			"memory per core and per node, as older versions print it",
			head + "7|a||n|FAILED|00:01|4|2|00:01|2Gc||\n8|a||n|FAILED|00:01|4|2|00:01|3Gn||\n9|a||n|FAILED|00:01|||00:01|3Gn||\n",
			[]sacct.Job{
				{ID: "7", User: "a", Name: "n", State: "FAILED", Elapsed: new(time.Second), CPUs: 4, Nodes: 2, CPU: new(time.Second), Asked: 8 << 30},
				{ID: "8", User: "a", Name: "n", State: "FAILED", Elapsed: new(time.Second), CPUs: 4, Nodes: 2, CPU: new(time.Second), Asked: 6 << 30},
				{ID: "9", User: "a", Name: "n", State: "FAILED", Elapsed: new(time.Second), CPU: new(time.Second)},
			},
		},
		{
			"what is missing is not zero",
			head + "7_3|a||n|CANCELLED by 1000|00:10:00|1||00:00:00|0|0|\n8|a||n|PENDING||0||||Unknown|\n",
			[]sacct.Job{
				{ID: "7_3", User: "a", Name: "n", State: "CANCELLED by 1000", Elapsed: new(10 * time.Minute), CPUs: 1},
				{ID: "8", User: "a", Name: "n", State: "PENDING"},
			},
		},
		{
			"a requeued job counts once a run",
			head + "7|a||n|REQUEUED|00:10|1||00:09||\n" + "7|a||n|COMPLETED|00:20|2||00:30||\n7.batch|||batch|COMPLETED|00:20|2||00:30||5M|1\n",
			nil, // set below: the first line is one field short
		},
		{
			"when it came and began, its limit and its GPUs",
			"JobID|Submit|Start|Timelimit|AllocTRES\n7|2026-01-31T09:00:00|2026-01-31T09:00:05|1-00:00:00|cpu=4,gres/gpu:a100=2,gres/gpu=2\n8|Unknown|Unknown|UNLIMITED|\n",
			[]sacct.Job{
				{ID: "7", Submit: time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC), Start: time.Date(2026, 1, 31, 9, 0, 5, 0, time.UTC), Limit: new(24 * time.Hour), GPUs: 2},
				{ID: "8"},
			},
		},
		{
			"a limit in minutes, or none, and GPUs that are counted by type alone",
			"JobID|TimelimitRaw|AllocTRES\n7|90|cpu=4,gres/gpu:a100=2,gres/gpu:h100=1\n8|UNLIMITED|\n9|Partition_Limit|\n",
			[]sacct.Job{{ID: "7", Limit: new(90 * time.Minute), GPUs: 3}, {ID: "8"}, {ID: "9"}},
		},
		{
			"a name with bars, where it is the last field",
			"JobID|State|JobName\n7|COMPLETED|a|b|\n8|COMPLETED|\n",
			[]sacct.Job{{ID: "7", Name: "a|b|", State: "COMPLETED"}, {ID: "8", State: "COMPLETED"}},
		},
		{
			"fields in any order, with a bar at the end, and lines of another system",
			"TotalCPU|JobID|Colour|ElapsedRaw|NCPUS|\r\n1-00:00:01.5|7|red|100000|3|\r\n\r\n",
			[]sacct.Job{{ID: "7", Elapsed: new(100000 * time.Second), CPUs: 3, CPU: new(24*time.Hour + 1500*time.Millisecond)}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, err := sacct.Parse(c.text)
			if c.name == "a requeued job counts once a run" {
				if !errors.Is(err, sacct.ErrFormat) || !strings.Contains(err.Error(), "line 2: found 11 fields") {
					t.Fatalf("two lines of three that are short: %v", err)
				}
				h, err = sacct.Parse(strings.Replace(strings.Replace(c.text, "00:09||\n", "00:09|||\n", 1), "00:30||\n", "00:30|||\n", 1))
				c.want = []sacct.Job{
					{ID: "7", User: "a", Name: "n", State: "REQUEUED", Elapsed: new(10 * time.Second), CPUs: 1, CPU: new(9 * time.Second)},
					{ID: "7", User: "a", Name: "n", State: "COMPLETED", Elapsed: new(20 * time.Second), CPUs: 2, CPU: new(30 * time.Second), Peak: 5 << 20},
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, h.Jobs, cmpopts.IgnoreFields(sacct.Job{}, "Line")); diff != "" || h.Faults != nil {
				t.Errorf("left out: %v (-want +got):\n%s", h.Faults, diff)
			}
		})
	}
}

func TestAFewLinesThatCannotBeReadHideNoOthers(t *testing.T) {
	t.Parallel()
	const head = "JobID|Elapsed|AllocCPUS|MaxRSS|JobName\n"
	good := func(id, name string) sacct.Job {
		return sacct.Job{ID: id, Name: name, Elapsed: new(time.Minute), CPUs: 1}
	}
	for _, c := range []struct {
		name, text string
		want       []sacct.Job
		left       int
		says       string
	}{
		{
			"a name of two lines", head + "7|01:00|1||first\nsecond|with a bar\n7.batch|01:00|1|1M|batch\n8|01:00|1||eight\n",
			[]sacct.Job{{ID: "7", Name: "first\nsecond|with a bar", Elapsed: new(time.Minute), CPUs: 1, Peak: 1 << 20}, good("8", "eight")},
			0, "",
		},
		{
			"a name that looks like many fields", head + "7|01:00|1||first\na|b|c|d|e|f\n8|01:00|1||eight\n",
			[]sacct.Job{good("7", "first\na|b|c|d|e|f"), good("8", "eight")},
			0, "",
		},
		{
			"a name of a step of two lines", head + "7|01:00|1||seven\n7.0|01:00|1||first\nsecond\n8|01:00|1||eight\n",
			[]sacct.Job{good("7", "seven"), good("8", "eight")},
			0, "",
		},
		{
			"a time that is none, and its steps", head + "7|soon|1||seven\n7.batch|01:00|1|1M|batch\n8|01:00|1||eight\n",
			[]sacct.Job{good("8", "eight")},
			1, `line 2: elapsed: found "soon"`,
		},
		{
			"a line that is cut", head + "7|01:00|1||seven\n8|01:00\n9|01:00|1||nine\n",
			[]sacct.Job{good("7", "seven"), good("9", "nine")},
			1, "line 3: found 2 fields",
		},
		{
			"a step that cannot be read", head + "7|01:00|1||seven\n7.0|01:00|1|much|solve\n",
			[]sacct.Job{good("7", "seven")},
			1, "line 3: maxrss",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, err := sacct.Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, h.Jobs, cmpopts.IgnoreFields(sacct.Job{}, "Line")); diff != "" || len(h.Faults) != c.left {
				t.Errorf("%d left out, want %d (-want +got):\n%s", len(h.Faults), c.left, diff)
			}
			if told := fmt.Sprint(h.Faults); (h.Faults != nil) != (c.says != "") || !strings.Contains(told, c.says) {
				t.Errorf("told %v, want %q", told, c.says)
			}
		})
	}
}

func TestWhatIsNotSacctsIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, says string }{
		{"nothing", "", "line 1: found \"\"; want the names of the fields"},
		{"the columns of sacct without -P", "JobID    JobName\n7   n\n", "line 1"},
		{"no header", "1|a|1|b\n", "names of the fields"},
		{"a field twice", "JobID|User|user\n", "line 1: user: found it twice"},
		{"a name with a bar before other fields", "JobID|JobName|State\n7|a|b|COMPLETED\n", "line 2: found 4 fields; want 3 as in the header; where the name of a job has a bar in it, ask for JobName as the last field"},
		{"a step without its job", "JobID\n7.batch\n", "line 2: JobID: found \"7.batch\""},
		{"an id that is none", "JobID\nx\n", "want a number"},
		{"an id that ends in its step", "JobID\n7.\n", "want a number"},
		{"a time that is none", "JobID|Elapsed\n7|soon\n", "line 2: elapsed: found \"soon\"; want a time"},
		{"a negative time", "JobID|Elapsed\n7|-1:00\n", "want a time"},
		{"a time of too many parts", "JobID|Elapsed\n7|1:2:3:4\n", "want a time"},
		{"cores that are none", "JobID|AllocCPUS\n7|4.5\n", "want a whole number"},
		{"memory that is none", "JobID|MaxRSS\n7|much\n", "want an amount of memory"},
		{"memory of no unit that sacct prints", "JobID|ReqMem\n7|4GiB\n", "want an amount of memory"},
		{"several at once", "JobID|Elapsed\n7|x\n8|y\n", "line 3"},
		{"very many", "JobID\n" + strings.Repeat("x\n", 99), "and 89 more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, err := sacct.Parse(c.text)
			if !errors.Is(err, sacct.ErrFormat) || !strings.Contains(err.Error(), c.says) || h.Jobs != nil {
				t.Errorf("%v and %+v; want an error with %q", err, h, c.says)
			}
		})
	}
}

func history(t *testing.T) []sacct.Job {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "history.txt"))
	if err != nil {
		t.Fatal(err)
	}
	h, err := sacct.Parse(string(text))
	if err != nil || h.Faults != nil {
		t.Fatal(h.Faults, err)
	}
	return h.Jobs
}

func TestSummaryAsAPersonReadsIt(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]sacct.Summary{
		"summary.txt": sacct.Summarise(history(t)), "nothing.txt": sacct.Summarise(nil),
		"bare.txt": sacct.Summarise([]sacct.Job{{ID: "1", State: "COMPLETED", User: "e\x1bve"}}),
	} {
		got := sacct.Text(s, "")
		path := filepath.Join("testdata", name)
		fixtures.Golden(t, *update, path, got)
	}
	if text := sacct.Text(sacct.Summarise(history(t)), "user"); !strings.Contains(text, "\nUSER ") || strings.Contains(text, "\nACCOUNT ") {
		t.Errorf("one table:\n%s", text)
	}
}

func TestSumsAreOfTheRunsThatHaveTheNumber(t *testing.T) {
	t.Parallel()
	job := func(f func(*sacct.Job)) sacct.Job {
		j := sacct.Job{
			ID: "1", User: "a", Name: "n", State: "COMPLETED", Elapsed: new(time.Hour), CPUs: 4, CPU: new(time.Hour),
			Asked: 8 << 30, Peak: 2 << 30,
		}
		f(&j)
		return j
	}
	got := sacct.Summarise([]sacct.Job{
		job(func(*sacct.Job) {}),
		job(func(j *sacct.Job) { j.CPU = nil }),
		job(func(j *sacct.Job) { j.Peak, j.CPU = 0, new(9*time.Hour) }), // it is no reason to think that others used theirs
		job(func(j *sacct.Job) { j.Elapsed = nil }),
		job(func(j *sacct.Job) { j.State = "RUNNING" }),
		job(func(j *sacct.Job) { j.Name = "" }),
		job(func(j *sacct.Job) { j.Name = "" }), // it is unknown whether it returns
	})
	want := sacct.Line{
		Key: "total", Runs: 6, CoreHours: 20, Timed: 5, CPURuns: 4, Allocated: 16, Used: 12, Unused: 9, MemoryRuns: 4, Asked: 32, Peak: 8, Spare: 22,
		Returning: 3, ReturningHours: 8,
	}
	if diff := cmp.Diff(want, got.Total); diff != "" || got.Open != 1 {
		t.Errorf("open %d (-want +got):\n%s", got.Open, diff)
	}
	if text := sacct.Text(got, "user"); !strings.Contains(text, " 75 % ") {
		t.Errorf("no efficiency of 75 %%:\n%s", text)
	}
	if text := sacct.Text(sacct.Summary{Total: sacct.Line{Runs: 3}}, "user"); strings.Contains(text, "%") {
		t.Errorf("an efficiency of nothing:\n%s", text)
	}
}

func FuzzParse(f *testing.F) {
	text, err := os.ReadFile(filepath.Join("testdata", "history.txt"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add("JobID|Elapsed|ReqMem|MaxRSS|TotalCPU|AllocCPUS|NNodes|NTasks\n1|99999-99999:99999:99999.999999999|9999999P|8E|?|2147483647|2147483647|\n1.0||||||||\n")
	f.Add("JobID|\n7|\n7.batch|\n")
	f.Add("JobID|State|JobName\n7|COMPLETED|a\nb|c\n8|COMPLETED\n9|COMPLETED|d\n")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := sacct.Parse(text)
		jobs := h.Jobs
		if err != nil {
			if !errors.Is(err, sacct.ErrFormat) || jobs != nil {
				t.Fatalf("%v with %d jobs", err, len(jobs))
			}
			return
		}
		for _, j := range jobs {
			if j.ID == "" || j.CPUs < 0 || j.Nodes < 0 || j.Asked < 0 || j.Peak < 0 ||
				j.Elapsed != nil && *j.Elapsed < 0 || j.CPU != nil && *j.CPU <= 0 {
				t.Fatalf("%+v", j)
			}
		}
		s := sacct.Summarise(jobs)
		if s.Total.Runs+s.Open != len(jobs) || s.Total.Returning > s.Total.Runs || s.Total.CPURuns > s.Total.Timed {
			t.Fatalf("%+v of %d jobs", s, len(jobs))
		}
		if out := sacct.Text(s, ""); strings.ContainsAny(out, "\x1b\t") {
			t.Fatalf("%q", out)
		}
	})
}
