package joblog_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/evaluate/evaluatetest"
	"pitchpipe/controller/joblog"
)

const swf = `; Version: 2.2
; UnixStartTime: 893466664
; MaxNodes: 8 (as of May)
; MaxProcs: 64
`

func parse(t *testing.T, f joblog.Format, text string) joblog.Log {
	t.Helper()
	l, err := joblog.Parse(f, "log", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestALineBecomesAJobOrIsNamed(t *testing.T) {
	t.Parallel()
	const head = "JobID|User|Partition|State|Submit|Start|Elapsed|Timelimit|AllocCPUS|AllocTRES|JobName\n"
	const stray = `extraneous or missing " in quoted-field`
	for _, c := range []struct {
		name   string
		format joblog.Format
		text   string
		jobs   []joblog.Job
		broken []joblog.Broken
	}{
		{
			"swf: what is known", joblog.SWF, swf + " 7 100 5 60 4 30 1024 8 3600 2048 1 3 2 9 1 -1 -1 -1\n",
			[]joblog.Job{{
				Line: 5, ID: "7", User: "3", Account: "2", Name: "9", Group: "1", State: "COMPLETED", Submit: 100, Start: 105, Duration: 60, Limit: 3600, CPUs: 4,
				Memory: 8 << 20, MemoryUsed: 4 << 20, CPUSeconds: 120,
			}},
			nil,
		},
		{
			"swf: what is unknown is not zero, and processors asked for stand in for those given", joblog.SWF, "7 0 -1 9 -1 -1 -1 8 -1 -1 5 -1 -1 -1 -1 2 -1 -1 {4,4} q_1d\n",
			[]joblog.Job{{Line: 1, ID: "7", Group: "2", State: "CANCELLED", Duration: 9, CPUs: 8}},
			nil,
		},
		{
			"swf: broken lines, comments and empty ones", joblog.SWF,
			"1 2\n" + strings.Repeat("1 ", 36) + "\n1 0 0 x 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n; c\n1 0 0 -1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n1 0 0 9 1 1 1 1 1 1 3 1 1 1 1 1 1 1\n1 0 0 9 0 1 1 0 1 1 1 1 1 1 1 1 1 1\n1 -1 0 9 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n8 1 0 9 1 -1 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n1 0 9 0 4 -1 -1 4 -1 -1 5 1 1 1 1 1 1 1",
			[]joblog.Job{{Line: 9, ID: "8", State: "COMPLETED", Submit: 1, Start: 1, Duration: 9, CPUs: 1}},
			[]joblog.Broken{
				{1, "it has 2 fields: want 18"},
				{2, "it has 36 fields: want 18"},
				{3, `field 4 is "x": want a number`},
				{5, "its run time is unknown"},
				{6, "it is a part of a job that has its own line"},
				{7, "it has no nodes, cpus or gpus: it never ran"},
				{8, "its submission is unknown"},
				{10, "it was cancelled before it ran"},
			},
		},
		{
			"sacct: a job with its steps, one that runs, one that never began, a line that is cut", joblog.Sacct,
			head + "7|eve|gpu|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:01:00|00:10:00|01:00:00|4|cpu=4,gres/gpu=2|a\n7.0|||COMPLETED|2026-01-01T00:00:00|2026-01-01T00:01:00|00:10:00||4||s\n" +
				"8|eve|gpu|RUNNING|2026-01-01T00:00:00|2026-01-01T00:01:00|00:10:00|01:00:00|4||a\n9|eve|gpu|CANCELLED by 7|2026-01-01T00:00:00|Unknown|00:00:00|01:00:00|0||a\n10|eve\n",
			[]joblog.Job{{
				Line: 2, ID: "7", User: "eve", Group: "gpu", Name: "a", State: "COMPLETED", Submit: 1767225600, Start: 1767225660, Duration: 600, Limit: 3600, CPUs: 4, GPUs: 2,
			}},
			[]joblog.Broken{{6, "found 2 fields; want 11 as in the header; where the name of a job has a bar in it, ask for JobName as the last field"}, {4, "it has not ended"}, {5, "it was cancelled before it ran"}},
		},
		{
			"sacct: a job that began before its submission, as where summer time ended between", joblog.Sacct,
			head + "7|eve||COMPLETED|2026-10-25T02:50:00|2026-10-25T02:10:00|00:10:00||4||a\n",
			[]joblog.Job{{Line: 2, ID: "7", User: "eve", Name: "a", State: "COMPLETED", Submit: 1792896600, Duration: 600, CPUs: 4}},
			nil,
		},
		{
			"csv: columns in any order, others left alone, empty cells unknown", joblog.CSV,
			"\ufeffcpus,colour,duration,submit,kind,memory,id\n4,red,60,0,a/b,,x\n,blue,1,0,,,\n2,,,0,,,\n2,,9,-1,,,\n1.5,,9,0,,,\n2,,NaN,0,,,\n3,,1\n2,\"a\nb\",9,1,,1024,\n",
			[]joblog.Job{{Line: 2, ID: "x", Duration: 60, CPUs: 4, Kind: "a/b"}, {Line: 9, ID: "9", Submit: 1, Duration: 9, CPUs: 2, Memory: 1024}},
			[]joblog.Broken{
				{3, "it has no nodes, cpus or gpus: it never ran"},
				{4, "duration is missing"},
				{5, "submit is -1: want a number from 0 to 1e+11"},
				{6, "cpus is 1.5: want a whole number from 0"},
				{7, "duration is NaN: want a number from 0 to 1e+11"},
				{8, "wrong number of fields: it has 3 cells and the header 7"},
			},
		},
		{
			"csv: of a stray quote, each line that it swallows counts as left out", joblog.CSV,
			"id,name,submit,duration,cpus\n1,ok,0,10,1\n2,\"bad,5,10,1\n3,\"five\",6,10,1\n4,ok,8,10,1\n5,\"bad,8,10,1\n6,ok,8,10,1\n7,ok,8,10,1\n",
			[]joblog.Job{{Line: 2, ID: "1", Name: "ok", Duration: 10, CPUs: 1}, {Line: 5, ID: "4", Name: "ok", Submit: 8, Duration: 10, CPUs: 1}},
			[]joblog.Broken{
				{3, stray}, {4, stray}, {6, stray}, {7, stray}, {8, stray},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := parse(t, c.format, c.text)
			if diff := cmp.Diff(c.jobs, l.Jobs) + cmp.Diff(c.broken, l.Broken); diff != "" {
				t.Error(diff)
			}
		})
	}
	l := parse(t, joblog.SWF, swf+"8 1 0 9 1 -1 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1")
	if diff := cmp.Diff([]joblog.Cluster{{Nodes: 8, Cores: 64}}, l.Clusters); diff != "" || l.Origin != 893466664 {
		t.Error(diff, l.Origin)
	}
}

func TestALogWithoutAJobIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		format joblog.Format
		text   string
		says   string
	}{
		{"an empty one", joblog.SWF, "; nothing\n", "it has no job"},
		{"broken lines alone", joblog.SWF, "1 2\n3\n", "log:1: it has 2 fields: want 18; none of 2 lines can be used"},
		{"a csv without what is needed", joblog.CSV, "id,submit\n1,2\n", `line 1: column "duration" is missing`},
		{"a csv without a size of jobs", joblog.CSV, "submit,duration,cpu\n1,2,3\n", `line 1: columns "cpus" and "gpus" are missing`},
		{"a csv with a column twice", joblog.CSV, "submit,duration,submit\n", `column "submit" is there twice`},
		{"no header of sacct", joblog.Sacct, "x\n", "line 1"},
		{"gzip that is cut", joblog.CSV, "\x1f\x8b", "log"},
		{"a folder's format", joblog.Venus, "", "it is a folder"},
		{"no format", "xml", "", "want one of [swf sacct venus csv]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, err := joblog.Parse(c.format, "log", strings.NewReader(c.text))
			if !errors.Is(err, joblog.ErrInvalid) || !strings.Contains(err.Error(), c.says) || l.Jobs != nil {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
	for _, f := range append(joblog.Formats(), "xml") {
		if _, err := joblog.Read(f, filepath.Join(t.TempDir(), "absent")); !errors.Is(err, joblog.ErrInvalid) {
			t.Errorf("%s: %v", f, err)
		}
	}
}

func TestGzipIsUnpacked(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte("submit,duration,gpus\n1,2,3\n"))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := joblog.Read(joblog.CSV, path); err != nil || len(l.Jobs) != 1 || l.Jobs[0].GPUs != 3 {
		t.Errorf("%+v %v", l, err)
	}
}

func TestTheVenusTraceIsWhatItsPageSays(t *testing.T) {
	t.Parallel()
	l, err := joblog.Read(joblog.Venus, evaluatetest.Path(t, "lucid-venus"))
	if err != nil {
		t.Fatal(err)
	}
	m := l.Models
	for what, n := range map[string][2]int{
		"jobs": {len(l.Jobs), 23859}, "broken": {len(l.Broken), 0}, "clusters": {len(l.Clusters), 15}, "ebm": {len(m.EBM), 23873},
		"arrivals": {len(m.Arrivals), 4032}, "alone": {len(m.Alone), 66}, "pairs": {len(m.Pairs), 1388},
	} {
		if n[0] != n[1] {
			t.Errorf("%s: %d, want %d", what, n[0], n[1])
		}
	}
	for _, j := range l.Jobs {
		if a, ok := m.Alone[j.Kind]; !ok || math.IsNaN(a.Memory+a.Sharing) {
			t.Fatalf("%q of job %s is measured alone: %t %+v", j.Kind, j.ID, ok, a)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{swf + "7 100 5 60 4 30 1024 8 3600 2048 1 3 2 9 1 -1 -1 -1\n", "JobID|Submit|Elapsed|AllocCPUS|State\n7|2026-01-01T00:00:00|01:00|1|COMPLETED\n", "submit,duration,gpus\n1,2,3\n1e300,\"2\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, format := range joblog.Formats() {
			l, err := joblog.Parse(format, "log", strings.NewReader(text))
			if (err == nil) != (len(l.Jobs) > 0) || err != nil && !errors.Is(err, joblog.ErrInvalid) {
				t.Fatalf("%s: %d jobs and %v", format, len(l.Jobs), err)
			}
			for _, j := range l.Jobs {
				if j.Line < 1 || j.ID == "" || !(j.Duration >= 0) || !(j.Submit >= 0) || math.IsInf(j.Duration+j.Submit, 0) || j.Memory < 0 || min(j.CPUs, j.GPUs, j.Nodes) < 0 {
					t.Fatalf("%+v", j)
				}
			}
			for _, b := range l.Broken {
				if b.Line < 1 || b.Why == "" {
					t.Fatalf("%+v", b)
				}
			}
		}
	})
}

func TestAFolderWithAHoleInAModelIsRefused(t *testing.T) {
	t.Parallel()
	whole := map[string]string{
		"x_jobs.csv":    "job_id,vc,submit_time,duration,gpu_num,model,dataset,batchsize,amp\n1,a,5,6,2,M,D,32,0\n2,a,5,,2,M,D,32,0\n3,,5,6,2,M,D,32,0\n",
		"vc_config.csv": ",num\na,2\n", "x_throughput_pred.csv": "time,pred_gpu_job,pred_gpu_num\n2020-04-01 00:10:00,1,2\n",
	}
	for _, c := range []struct{ name, file, text, says string }{
		{"nothing is wrong", "x_lgb.csv", "", ""},
		{"a model lacks a column", "single_data.csv", "model,dataset\n", `single_data.csv: line 1: column "batchsize" is missing`},
		{"a model lacks a number", "x_ebm.csv", "job_id,priority\n1,2\n2,\n", `x_ebm.csv: line 3: priority is "": want a number`},
		{"two logs", "y_jobs.csv", "", "it has 2 files *_jobs.csv*: want one"},
		{"no nodes", "vc_config.csv", "", "vc_config.csv: line 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "[1]")
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			files := maps.Clone(whole)
			files[c.file] = c.text
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			l, err := joblog.Read(joblog.Venus, folder)
			if c.says != "" {
				if !errors.Is(err, joblog.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, want %q", err, c.says)
				}
				return
			}
			want := []joblog.Job{{Line: 2, ID: "1", Group: "a", Submit: 5, Duration: 6, GPUs: 2, Kind: "M/D/32/0"}}
			diff := cmp.Diff(want, l.Jobs) + cmp.Diff([]joblog.Arrivals{{At: 600, Jobs: 1, GPUs: 2}}, l.Models.Arrivals) + cmp.Diff([]joblog.Broken{{3, "duration is missing"}, {4, "vc is missing"}}, l.Broken)
			if err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}
