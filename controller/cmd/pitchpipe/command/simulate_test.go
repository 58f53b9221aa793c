package command_test

import (
	"compress/gzip"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pitchpipe/controller/tuning"
	"pitchpipe/test/fixtures"
)

const swf = `; MaxProcs: 8
1 0 -1 100 5 -1 -1 5 100 -1 1 1 1 1 1 1 -1 -1
2 1 -1 50 8 -1 -1 8 50 -1 1 1 1 1 1 1 -1 -1
3 2 -1 95 3 -1 -1 3 90 -1 1 2 1 1 1 1 -1 -1
a line that is none
4 3 -1 10 16 -1 -1 16 50 -1 1 2 1 1 1 1 -1 -1
`

// steady takes out what no two runs have in common.
func steady(text string) string {
	text = regexp.MustCompile(`("cpu_seconds": )[^,\n]*`).ReplaceAllString(text, `${1}0`)
	return regexp.MustCompile(`(?m)^((?:fifo|srtf|easy) .* )[0-9.]+$|^(cpu_seconds +)[0-9.]+ +`).ReplaceAllString(text, "${1}${2}")
}

func TestASimulationAsAPersonAndAProgramReadIt(t *testing.T) {
	t.Parallel()
	path := write(t, "log.swf", swf)
	out := filepath.Join(t.TempDir(), "new")
	ok := func(args ...string) string {
		t.Helper()
		r := pitchpipe(t, append([]string{"simulate", path, "--format", "swf", "--policy", "fifo,srtf,easy"}, args...)...)
		if r.code != 0 || !strings.Contains(r.errors, "jobs under easy") {
			t.Fatal(r.code, r.errors)
		}
		return strings.ReplaceAll(r.out, path, "log.swf")
	}
	update := flag.Lookup("update").Value.String() == "true"
	fixtures.Golden(t, update, "testdata/simulate.txt", steady(ok("--out", out)))
	fixtures.Golden(t, update, "testdata/simulate.json", steady(ok("--json")))
	text := ok("--nodes", "2", "--cores-per-node", "8", "--json")
	var r struct {
		Summary struct {
			Units, Jobs int
			LeftOut     []struct{ Line int } `json:"left_out"`
		}
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Summary.Units != 16 || r.Summary.Jobs != 4 || len(r.Summary.LeftOut) != 1 {
		t.Errorf("two nodes: %+v %v", r, err)
	}
	files, err := os.ReadDir(out)
	names := tuning.Each(files, os.DirEntry.Name)
	want := strings.Fields("completions.svg jobs_easy.csv.gz jobs_fifo.csv.gz jobs_srtf.csv.gz timeline_easy.svg timeline_fifo.svg timeline_srtf.svg waits.svg")
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("%v, want %v (%v)", names, want, err)
	}
	file, err := os.Open(filepath.Join(out, "jobs_easy.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it is only read
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	table := new(strings.Builder)
	if _, err := io.Copy(table, z); err != nil { //nolint:gosec // we wrote it
		t.Fatal(err)
	}
	const jobs = "job_id,vc,gpu_num,submit_time,duration,start_time,end_time,queue,jct,ckpt_times\n1,1,5,0,100,0,100,0,100,0\n2,1,8,1,50,100,150,99,149,0\n3,1,3,2,95,2,92,0,90,0\n"
	if table.String() != jobs {
		t.Errorf("%s", table)
	}
}

func TestASimulationThatCannotBeIsRefusedBeforeItBegins(t *testing.T) {
	t.Parallel()
	path, folder := write(t, "log.swf", swf), filepath.Join(t.TempDir(), "results")
	for _, c := range []struct{ name, args, says string }{
		{"results of a log of another format", "--format csv --out " + folder, `line 1: column "submit" is missing`},
		{"results of jobs that are too large", "--format swf --nodes 2 --cores-per-node 1 --out " + folder, "line 2: it needs 5 cores of 2"},
		{"results of a policy without its models", "--format swf --policy lucid --out " + folder, "--policy lucid: "},
		{"a policy that is none", "--format swf --policy fast", `--policy "fast": want some of fifo`},
		{"no policy", "--format swf --policy=", "--policy: want some of fifo"},
		{"no nodes", "--format swf --nodes 0", "--nodes 0: want 1 or more"},
		{"fewer than no cores", "--format swf --nodes 1 --cores-per-node -4", "--cores-per-node -4: want 1 or more"},
		{"jobs that are too large", "--format swf --nodes 2 --cores-per-node 1", "line 2: it needs 5 cores of 2"},
		{"a policy without its models, after one that can run", "--format swf --policy fifo,lucid", "--policy lucid: "},
		{"another format", "--format csv", `line 1: column "submit" is missing`},
		{"results into a file", "--format swf --out " + path, "not a directory"},
	} {
		r := pitchpipe(t, append([]string{"simulate", path}, strings.Fields(c.args)...)...)
		if r.code != 2 || r.out != "" || strings.Count(r.errors, "\n") != 1 || !strings.Contains(r.errors, c.says) {
			t.Errorf("%s: %d %s%s\nwant %s", c.name, r.code, r.out, r.errors, c.says)
		}
		if _, err := os.Stat(folder); err == nil {
			t.Errorf("%s: it leaves a folder", c.name)
		}
	}
}
