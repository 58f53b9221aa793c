package parse_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver/slurm/parse"
)

// As 22.05.8 printed it, except the GPUs.
const every = `18114003|18114003|3|u1|alpha|main|normal|PENDING|1|1|30:00|2026-11-26T04:33:11|2026-11-26T05:03:11|2026-11-26T05:33:11|0|N/A|N/A|(null)|wrap
18114004|18114004|N/A|u1|alpha|main|normal|PENDING|8|2|UNLIMITED|2026-11-26T04:33:11|N/A|NONE|-3|N/A|gres:gpu:2|(null)|wrap
18114005|18114003|1|u1|alpha|main|normal|COMPLETED|1|1|30:00|2026-11-26T04:33:11|2026-11-26T04:33:11|2026-11-26T04:34:01|0|gres:gpu:1|N/A|pitchpipe:off|NAME
`

// ends is a delimiter of columns, and delimited has it where a text has |.
const ends = "|EF6Q|"

func delimited(text string) []byte {
	return []byte(strings.ReplaceAll(strings.ReplaceAll(text, "\n", "|\n"), "|", ends))
}

func TestEveryJobOfTheQueueIsReadWhoeverTunesIt(t *testing.T) {
	t.Parallel()
	at := func(clock string) time.Time {
		v, err := time.Parse(time.DateTime, "2026-11-26 "+clock)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	job := parse.Job{User: "u1", Account: "alpha", Partition: "main", QOS: "normal", Tasks: 1, Submitted: at("04:33:11"), Comment: "(null)", Name: "wrap"}
	task, big, ended := job, job, job
	task.ID, task.ArrayJob, task.ArrayTask, task.State, task.CPUs, task.Nodes, task.TimeLimit = "18114003", "18114003", "3", "PENDING", 1, 1, 30*time.Minute
	task.Started, task.Ended = at("05:03:11"), at("05:33:11")
	big.ID, big.State, big.CPUs, big.Nodes, big.GPUs, big.Nice = "18114004", "PENDING", 8, 2, 4, -3
	ended.ID, ended.ArrayJob, ended.ArrayTask, ended.State, ended.CPUs, ended.Nodes, ended.TimeLimit = "18114005", "18114003", "1", "COMPLETED", 1, 1, 30*time.Minute
	ended.Started, ended.Ended, ended.GPUs, ended.Comment, ended.Name = at("04:33:11"), at("04:34:01"), 1, "pitchpipe:off", "NAME"
	want := []parse.Job{task, big, ended}
	for about, name := range map[string]string{
		"as they are":                          "a | b",
		"a name of several lines hides no job": "two lines\n|of it|\n",
		"a name that imitates the line of another's job takes none out, and adds none": "x\n18114004|18114004|N/A|u2|alpha|main|normal|PENDING|1|1|1:00|2026-11-26T04:33:11|N/A|NONE|0|N/A|N/A||x|",
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			want := slices.Clone(want)
			want[2].Name = name
			got, left, err := parse.Every([]byte(strings.Replace(string(delimited(every)), "NAME", name, 1)), ends)
			if diff := cmp.Diff(want, got); diff != "" || left != 0 || err != nil {
				t.Errorf("%d left out, %v; -want +got:\n%s", left, err, diff)
			}
		})
	}
	odd := strings.Replace(every, "|8|2|", "|eight|2|", 1)
	if got, left, err := parse.Every(delimited(odd), ends); len(got) != 2 || left != 1 || err != nil {
		t.Errorf("%d jobs, %d left out, %v; want two, without the one that cannot be read", len(got), left, err)
	}
	if _, _, err := parse.Every(delimited(every+"7|7\n"), ends); !errors.Is(err, parse.ErrFormat) {
		t.Errorf("a line that is cut off: %v, want %v", err, parse.ErrFormat)
	}
}

func TestOfAnArrayThatWaitsFewTasksAreReadAtATime(t *testing.T) {
	t.Parallel()
	first, _, _ := strings.Cut(every, "\n")
	text := ""
	for n := range parse.MaxTasks + 10 {
		text += strings.Replace(first, "|3|", fmt.Sprintf("|%d|", n), 1) + "\n"
	}
	if got, left, err := parse.Every(delimited(text), ends); len(got) != parse.MaxTasks || left != 0 || err != nil {
		t.Errorf("%d tasks, %d left out, %v, want %d tasks", len(got), left, err, parse.MaxTasks)
	}
}

func TestCPUTimes(t *testing.T) {
	t.Parallel()
	got, err := parse.CPUTimes([]byte("7|00:01.500\n7.batch|00:01.500\n8|1-02:00:03\n9|00:00:00\n"))
	if diff := cmp.Diff(map[string]time.Duration{"7": time.Second, "8": 26*time.Hour + 3*time.Second, "9": 0}, got); err != nil || diff != "" {
		t.Errorf("%v; -want +got:\n%s", err, diff)
	}
	if _, err := parse.CPUTimes([]byte("7|soon\n")); err == nil {
		t.Error("no error")
	}
}

func FuzzEvery(f *testing.F) {
	f.Add(every)
	f.Fuzz(func(t *testing.T, s string) {
		jobs, left, _ := parse.Every(delimited(s), ends)
		for _, j := range jobs {
			if j.ID == "" || j.State == "" || j.TimeLimit < 0 || j.GPUs < 0 || left < 0 {
				t.Errorf("an impossible job: %+v", j)
			}
		}
	})
}
