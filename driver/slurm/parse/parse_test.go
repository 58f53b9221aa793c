package parse_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver/slurm/parse"
)

// recorded is an output of Slurm 22.05.8, with other names.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestARecordedQueue(t *testing.T) {
	t.Parallel()
	lines, err := parse.Queue(recorded(t, "squeue.txt"))
	if err != nil || len(lines) != 9 {
		t.Fatalf("%d lines (%v), want 9", len(lines), err)
	}
	waiting, task := lines[0], lines[8]
	if waiting.ID != "21" || waiting.ArrayTask != "" {
		t.Errorf("waiting job %+v", waiting)
	}
	if task.ID != "28" || task.ArrayJob != "22" || task.ArrayTask != "1" {
		t.Errorf("task of an array %+v, want task 1 of 22", task)
	}
	if lines[1].ArrayTask != "2-3%1" {
		t.Errorf("waiting tasks %+v, want 2-3%%1", lines[1])
	}
}

func TestWhatOfALineOfSqueueSaysThatAJobHasToBeLookedAt(t *testing.T) {
	t.Parallel()
	read := func(text string) parse.QueueLine {
		t.Helper()
		lines, err := parse.Queue([]byte(text + "\n"))
		if err != nil || len(lines) != 1 {
			t.Fatalf("%q: %v", text, err)
		}
		return lines[0]
	}
	base := read("7|7|N/A|N/A|PENDING|Priority|0|1|100M|10:00|main|")
	for text, same := range map[string]bool{
		"7|7|N/A|N/A|PENDING|Priority|0|1|100M|10:00|main|":    true,
		"7|7|N/A|N/A|PENDING|Resources|0|1|100M|10:00|main|":   true,
		"7|7|N/A|N/A|PENDING|JobHeldUser|0|1|100M|10:00|main|": false,
		"7|7|N/A|N/A|RUNNING|None|0|1|100M|10:00|main|":        false,
		"7|7|N/A|N/A|PENDING|Priority|1|1|100M|10:00|main|":    false,
		"7|7|N/A|N/A|PENDING|Priority|0|2|100M|10:00|main|":    false,
		"7|7|N/A|N/A|PENDING|Priority|0|1|200M|10:00|main|":    false,
		"7|7|N/A|N/A|PENDING|Priority|0|1|100M|20:00|main|":    false,
		"7|7|N/A|N/A|PENDING|Priority|0|1|100M|10:00|other|":   false,
	} {
		if got := read(text).Print == base.Print; got != same {
			t.Errorf("%s: the same is %v, want %v", text, got, same)
		}
	}
}

func TestRecordedJobs(t *testing.T) {
	t.Parallel()
	jobs, err := parse.Jobs(recorded(t, "scontrol-jobs.txt"))
	if !errors.Is(err, parse.ErrFormat) || len(jobs) != 8 {
		t.Fatalf("%d jobs (%v), want 8 and an error for the job whose name imitates a field", len(jobs), err)
	}
	byID := map[string]parse.Job{}
	for _, j := range jobs {
		byID[j.ID] = j
	}
	if _, ok := byID["20"]; ok {
		t.Error("the job whose name imitates a field was read")
	}
	j := byID["21"]
	if !j.MemoryPerCPU || j.MemoryBytes != 20<<20 || j.CPUsPerTask != 3 || j.TimeLimit != 26*time.Hour+3*time.Minute {
		t.Errorf("job 21 is %+v, want 20 MiB for each of 3 CPUs and 1-02:03:00", j)
	}
	if j.User != "alice" || !j.Batch || !j.Requeue || j.Held || j.WorkDir != "/home/alice" || j.StdOut != "/home/alice/slurm-21.out" {
		t.Errorf("job 21 is %+v", j)
	}
	if byID["25"].Nodes != 2 || byID["24"].HetJob != "23" || byID["28"].ArrayJob != "22" || byID["28"].ArrayTask != "1" {
		t.Errorf("nodes %d, leader %q, array %q", byID["25"].Nodes, byID["24"].HetJob, byID["28"].ArrayJob)
	}
}

// requeued is a job whose processes a requeue is ending.
const requeued = `JobId=2 JobName=two words UserId=a(1) GroupId=a(1) MCS_label=N/A Priority=0 Nice=0 Account=(null) QOS=normal ` +
	`JobState=COMPLETING Reason=job_requeued_in_held_state Dependency=(null) Requeue=1 Restarts=1 BatchFlag=1 Reboot=0 ExitCode=85:0 ` +
	`RunTime=00:00:00 TimeLimit=UNLIMITED TimeMin=N/A SubmitTime=2026-11-21T05:21:40 EligibleTime=Unknown StartTime=2026-11-21T05:21:44 ` +
	`EndTime=Unknown Partition=main AllocNode:Sid=h:1 NodeList=n1 BatchHost=n1 NumNodes=1 NumCPUs=2 NumTasks=N/A CPUs/Task=N/A ` +
	`MinMemoryNode=0 Command=(null) WorkDir=/a b Comment=x = y StdErr=/o StdIn=/dev/null StdOut=/o Power= `

func TestARequeuedJob(t *testing.T) {
	t.Parallel()
	jobs, err := parse.Jobs([]byte(requeued))
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%d jobs (%v), want 1", len(jobs), err)
	}
	j := jobs[0]
	if j.Name != "two words" || j.WorkDir != "/a b" || j.Comment != "x = y" || !j.Held || j.Restarts != 1 || j.Exit.Code() != 85 || !j.Ended.IsZero() {
		t.Errorf("job %+v", j)
	}
	for _, field := range []string{"JobState=COMPLETING ", "Restarts=1 ", "NumNodes=1 ", "TimeLimit=UNLIMITED ", "Requeue=1 "} {
		if _, err := parse.Jobs([]byte(strings.Replace(requeued, field, "", 1))); !errors.Is(err, parse.ErrFormat) {
			t.Errorf("without %s: %v, want %v", field, err, parse.ErrFormat)
		}
	}
	for _, bad := range []string{"Restarts=-1 ", "Restarts=x ", "Restarts= "} {
		if _, err := parse.Jobs([]byte(strings.Replace(requeued, "Restarts=1 ", bad, 1))); !errors.Is(err, parse.ErrFormat) {
			t.Errorf("%s: %v, want %v", bad, err, parse.ErrFormat)
		}
	}
}

// Slurm counts: 2 is a batch job that was put back into the queue since its node had failed.
func TestABatchJobWhoseNodeFailedIsOne(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]bool{"0": false, "1": true, "2": true} {
		jobs, err := parse.Jobs([]byte(strings.Replace(requeued, "BatchFlag=1", "BatchFlag="+flag, 1)))
		if err != nil || len(jobs) != 1 || jobs[0].Batch != want {
			t.Errorf("BatchFlag=%s: %+v (%v), want one job, a batch job: %v", flag, jobs, err, want)
		}
	}
}

func TestWhatElseWasRecorded(t *testing.T) {
	t.Parallel()
	past, err := parse.Accounting(delimited(string(recorded(t, "sacct.txt"))), ends)
	if err != nil || len(past) < 10 {
		t.Fatalf("%d jobs (%v) of the accounting, want 10 or more", len(past), err)
	}
	if p := past[0]; p.ID != "1" || p.Name != "exp" || p.State != "FAILED" || p.Exit.Exit != 85 || p.MemoryBytes != 100<<20 {
		t.Errorf("job of the accounting %+v", p)
	}
	if p := past[1]; p.State != "CANCELLED" || p.TimeLimit != 20*time.Minute {
		t.Errorf("cancelled job of the accounting %+v", p)
	}
	res, err := parse.Reservations(recorded(t, "scontrol-reservation.txt"))
	if err != nil || len(res) != 1 || res[0].Name != "maint" || res[0].Nodes != "n1" || res[0].End.Sub(res[0].Start) != time.Hour {
		t.Errorf("reservations %+v (%v)", res, err)
	}
	conf := parse.Config(recorded(t, "scontrol-config.txt"))
	if conf["SLURM_VERSION"] != "22.05.8" || conf["RequeueExitHold"] != "" || conf["AccountingStorageType"] != "accounting_storage/slurmdbd" {
		t.Errorf("version %q, RequeueExitHold %q", conf["SLURM_VERSION"], conf["RequeueExitHold"])
	}
	if start, err := parse.ExpectedStart(recorded(t, "sbatch-test-only.txt")); err != nil || start.Year() < 2026 {
		t.Errorf("start %v (%v)", start, err)
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]time.Duration{
		"10:00": 10 * time.Minute, "1:00": time.Minute, "01:02:03": time.Hour + 2*time.Minute + 3*time.Second,
		"365-00:00:00": 365 * 24 * time.Hour, "UNLIMITED": 0, "Partition_Limit": 0,
	} {
		if got, err := parse.Limit("TimeLimit", s); err != nil || got != want {
			t.Errorf("limit %q is %v (%v), want %v", s, got, err, want)
		}
	}
	for s, want := range map[string]int64{"100M": 100 << 20, "0": 0, "1.50G": 3 << 29, "64K": 64 << 10, "20": 20 << 20} {
		if got, err := parse.Memory("MinMemoryNode", s); err != nil || got != want {
			t.Errorf("memory %q is %d (%v), want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "x", "1:2:3:4", "1-2", "-1:00"} {
		if got, err := parse.Limit("TimeLimit", s); s != "" && !errors.Is(err, parse.ErrFormat) {
			t.Errorf("limit %q is %v (%v), want an error", s, got, err)
		}
	}
	for _, s := range []string{"", "M", "-1M", "NaN", "Inf", "1e400", "100Q", "0x10"} {
		if got, err := parse.Memory("MinMemoryNode", s); !errors.Is(err, parse.ErrFormat) {
			t.Errorf("memory %q is %d (%v), want an error", s, got, err)
		}
	}
}

func TestMemoryThatSacctSaysOfANodeOrACPU(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int64{"4G": 4 << 30, "4Gn": 8 << 30, "1000Mc": 3000 << 20, "0n": 0, "2Gc": 6 << 30} {
		if got, err := parse.ReqMem("ReqMem", s, 3, 2); err != nil || got != want {
			t.Errorf("%q of 3 CPUs on 2 nodes is %d (%v), want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "n", "4Gnn", "4Gx", "cn4G", "7000000Tc"} {
		if got, err := parse.ReqMem("ReqMem", s, 3, 2); !errors.Is(err, parse.ErrFormat) {
			t.Errorf("%q is %d (%v), want an error", s, got, err)
		}
	}
}

func TestANameOfSeveralLinesHidesNoJob(t *testing.T) {
	t.Parallel()
	const job = "7|a|COMPLETED|0:0|2026-11-21T05:00:00|2026-11-21T05:00:01|2026-11-21T05:00:02|1|4Gn|01:00|main|p|normal|1|"
	text := string(delimited(job + "NAME\n" + strings.Replace(job, "7", "8", 1) + "next\n"))
	name := "two\nlines | of it\n" + strings.Replace(job, "7", "9", 1) + "x|\n"
	past, err := parse.Accounting([]byte(strings.Replace(text, "NAME", name, 1)), ends)
	if err != nil || len(past) != 2 || past[0].Name != name || past[1].ID != "8" || past[0].MemoryBytes != 4<<30 {
		t.Errorf("%+v (%v), want jobs 7 and 8, and none that a name imitates", past, err)
	}
	if past, err := parse.Accounting([]byte("a line\n"+text), ends); !errors.Is(err, parse.ErrFormat) {
		t.Errorf("%+v (%v), want an error: before the first job there is no name", past, err)
	}
}

func TestTheCoresThatAJobAsksFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		job    parse.Job
		cores  int
		raised bool
	}{
		"of its task":  {parse.Job{CPUs: 4, Tasks: 1, CPUsPerTask: 4, State: "PENDING"}, 4, false},
		"of each task": {parse.Job{CPUs: 8, Tasks: 2, CPUsPerTask: 4, State: "PENDING"}, 4, false},
		"fewer of the job alone, which Slurm passes over": {parse.Job{CPUs: 3, Tasks: 1, CPUsPerTask: 4, State: "PENDING"}, 4, false},
		"more of the job alone":                           {parse.Job{CPUs: 3, Tasks: 1, CPUsPerTask: 1, State: "PENDING"}, 3, true},
		"and as it runs":                                  {parse.Job{CPUs: 3, Tasks: 1, CPUsPerTask: 1, State: "RUNNING"}, 1, false},
		"a whole node":                                    {parse.Job{CPUs: 8, Tasks: 1, CPUsPerTask: 1, State: "RUNNING"}, 1, false},
		"of the job, where no task is named":              {parse.Job{CPUs: 2, State: "COMPLETING"}, 2, false},
	} {
		if got := c.job.Cores(); got != c.cores || c.job.Raised() != c.raised {
			t.Errorf("%s: %d, raised %t; want %d, %t", name, got, c.job.Raised(), c.cores, c.raised)
		}
	}
}

func TestHowLongAJobWasSuspended(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	for name, c := range map[string]struct {
		state  string
		paused time.Time
		ran    time.Duration
		want   time.Duration
	}{
		"never":                            {"RUNNING", time.Time{}, 0, 0},
		"now, for the first time":          {"SUSPENDED", at(40), 40 * time.Second, 60 * time.Second},
		"once, and it runs again":          {"RUNNING", at(70), 40 * time.Second, 30 * time.Second},
		"for the second time":              {"SUSPENDED", at(90), 60 * time.Second, 40 * time.Second},
		"once, and it ended":               {"COMPLETED", at(70), 40 * time.Second, 30 * time.Second},
		"in the attempt before":            {"RUNNING", at(-70), 40 * time.Second, 0},
		"what cannot be, where clocks lie": {"RUNNING", at(10), time.Hour, 0},
	} {
		j := parse.Job{State: c.state, Started: start, Paused: c.paused, Ran: c.ran}
		if got := j.Suspended(at(100)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestWhatAJobAsksForBesideItsSize(t *testing.T) {
	t.Parallel()
	line := string(recorded(t, "scontrol-jobs.txt"))
	line = line[strings.Index(line, "JobId=21"):strings.Index(line, "JobId=28")]
	read := func(old, with string) parse.Job {
		t.Helper()
		jobs, err := parse.Jobs([]byte(strings.Replace(line, old, with, 1)))
		if err != nil || len(jobs) != 1 {
			t.Fatalf("%d jobs: %v", len(jobs), err)
		}
		return jobs[0]
	}
	if j := read("", ""); len(j.Picky) > 0 || !j.Deadline.IsZero() || !j.Paused.IsZero() {
		t.Errorf("a plain job asks for %q by %v", j.Picky, j.Deadline)
	}
	for old, with := range map[string]string{
		"Features=(null)": "Features=gpu", "Licenses=(null)": "Licenses=matlab:1", "ReqNodeList=(null)": "ReqNodeList=n1",
		"OverSubscribe=OK": "OverSubscribe=NO", " Network=(null)": " Network=(null) TresPerNode=gres:gpu:1",
	} {
		want := strings.TrimPrefix(strings.TrimPrefix(with, " Network=(null)"), " ")
		if j := read(old, with); len(j.Picky) != 1 || j.Picky[0] != want {
			t.Errorf("%q: it asks for %q", with, j.Picky)
		}
	}
	if j := read("Deadline=N/A", "Deadline=2026-11-22T05:46:34"); j.Deadline.Day() != 22 {
		t.Errorf("deadline %v", j.Deadline)
	}
	j := read("SuspendTime=None SecsPreSuspend=0", "SuspendTime=2026-11-21T05:46:40 SecsPreSuspend=6")
	if j.Ran != 6*time.Second || j.Paused.Second() != 40 {
		t.Errorf("suspended at %v after %v", j.Paused, j.Ran)
	}
}

func FuzzJobs(f *testing.F) {
	f.Add(string(recorded(f, "scontrol-jobs.txt")))
	f.Add("JobId=1 JobName=x JobState=RUNNING JobState=FAILED")
	f.Fuzz(func(t *testing.T, s string) {
		jobs, _ := parse.Jobs([]byte(s))
		for _, j := range jobs {
			if j.ID == "" || strings.Trim(j.ID, "0123456789") != "" || j.State == "" || j.Restarts < 0 || j.MemoryBytes < 0 || j.TimeLimit < 0 {
				t.Errorf("an impossible job: %+v", j)
			}
		}
	})
}

func FuzzQueue(f *testing.F) {
	f.Add(string(recorded(f, "squeue.txt")))
	f.Fuzz(func(t *testing.T, s string) {
		lines, err := parse.Queue([]byte(s))
		for _, l := range lines {
			if err == nil && (l.ID == "" || strings.Trim(l.ID, "0123456789") != "") {
				t.Errorf("an impossible line: %+v", l)
			}
		}
	})
}

func FuzzSites(f *testing.F) {
	f.Add(string(recorded(f, "sacct.txt")))
	f.Add(string(recorded(f, "scontrol-reservation.txt")))
	f.Fuzz(func(t *testing.T, s string) {
		if past, err := parse.Accounting(delimited(s), ends); err == nil {
			for _, p := range past {
				if p.ID == "" || p.State == "" || p.MemoryBytes < 0 {
					t.Errorf("an impossible job: %+v", p)
				}
			}
		}
		if res, err := parse.Reservations([]byte(s)); err == nil {
			for _, r := range res {
				if r.Name == "" {
					t.Errorf("a reservation without a name: %+v", r)
				}
			}
		}
	})
}

func TestGPUsThatAJobAsksFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fields string
		want   int
	}{
		{"", 0},
		{"TresPerNode=gres/gpu:2", 6},
		{"TresPerNode=gres:gpu:a100:2", 6},
		{"TresPerNode=gres/gpu", 3},
		{"TresPerJob=gres/gpu:4", 4},
		{"TresPerTask=gres/gpu:a100", 5},
		{"TresPerTask=cpu=2,gres/gpu=2", 10},
		{"TresPerNode=gres/gpumem:80G", 0},
		{"TresPerNode=gres/gpu:a100:1,gres/gpu:h100:2", 9},
		{"TresPerSocket=gres/gpu:2", 0},
	} {
		text := strings.NewReplacer("NumNodes=1", "NumNodes=3", "NumTasks=N/A", "NumTasks=5", "Power= ", "Power= "+c.fields+" ").Replace(requeued)
		jobs, err := parse.Jobs([]byte(text))
		if err != nil || len(jobs) != 1 || jobs[0].GPUs != c.want {
			t.Errorf("%s: %+v (%v), want %d GPUs", c.fields, jobs, err, c.want)
		}
	}
}

func TestBillingWeights(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       parse.Weights
		fails      bool
	}{
		{"without weights the CPUs are billed", "", parse.Weights{CPU: 1}, false},
		{"memory is billed by the GiB where it says so", "CPU=1.0,Mem=0.25G", parse.Weights{CPU: 1, GiB: .25}, false},
		{"memory is billed by the MiB where it says nothing", "mem=0.5", parse.Weights{GiB: 512}, false},
		{"K and M change nothing of memory", "Mem=1K,CPU=1", parse.Weights{CPU: 1, GiB: 1024}, false},
		{"T is a GiB's 1024", "Mem=1T", parse.Weights{GiB: 1. / 1024}, false},
		{"a suffix counts for CPUs too", "cpu=1k", parse.Weights{CPU: 1. / 1024}, false},
		{"GPUs with and without a type are added", "GRES/gpu=2.0,gres/gpu:a100=3,GRES/gpu:h100=5", parse.Weights{GPU: 7}, false},
		{"what a job is not tuned in is left out", "CPU=1,license/lic=1.5,GRES/craynetwork=2,Node=3", parse.Weights{CPU: 1}, false},
		{"a word is no weight", "CPU=much", parse.Weights{}, true},
		{"nor is a negative number", "CPU=-1", parse.Weights{}, true},
		{"nor two suffixes", "Mem=1GG", parse.Weights{}, true},
		{"nor nothing", "CPU=", parse.Weights{}, true},
		{"nor a resource alone", "CPU", parse.Weights{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := parse.Billing(c.text)
			if got != c.want || errors.Is(err, parse.ErrFormat) != c.fails {
				t.Errorf("%+v (%v), want %+v", got, err, c.want)
			}
		})
	}
}

func FuzzBilling(f *testing.F) {
	f.Add("CPU=1.0,Mem=0.25G,GRES/gpu:a100=2")
	f.Fuzz(func(t *testing.T, text string) {
		w, err := parse.Billing(text)
		if err != nil && !errors.Is(err, parse.ErrFormat) {
			t.Errorf("error %v, want one that is %v", err, parse.ErrFormat)
		}
		if !(w.CPU >= 0) || !(w.GiB >= 0) || !(w.GPU >= 0) {
			t.Errorf("%q: %+v", text, w)
		}
	})
}
