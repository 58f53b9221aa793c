package parse_test

import (
	"testing"

	"pitchpipe/driver/slurm/parse"
)

func TestWhoDependsOnAJob(t *testing.T) {
	t.Parallel()
	job := parse.Job{ID: "7", Name: "train", UID: 1001}
	task := parse.Job{ID: "9", ArrayJob: "5", ArrayTask: "2", Name: "sweep", UID: 1001}
	for _, c := range []struct {
		name, line string
		job        parse.Job
		want       string // empty = no one
	}{
		{"its dependant", "8 1002 afterok:7(unfulfilled) after\n", job, "8"},
		{"one that depends on others, too", "6 1001 (null) x\n8 1002 afterany:6(unfulfilled),afterok:7(unfulfilled) after\n", job, "8"},
		{"one of several of which any will do", "8 1002 afterok:6(unfulfilled)?afternotok:7(unfulfilled) after\n", job, "8"},
		{"the next of its name", "8 1001 singleton(unfulfilled) train\n", job, "8"},
		{"the next of its name of another user", "8 1002 singleton(unfulfilled) train\n", job, ""},
		{"the next of another name", "8 1001 singleton(unfulfilled) train more\n", job, ""},
		{"itself, the next of its name", "7 1001 singleton(unfulfilled) train\n", job, ""},
		{"a job that depends on a longer number", "8 1001 afterok:77(unfulfilled) train\n", job, ""},
		{"a job whose name looks like a dependency", "8 1001 (null) afterok:7\n", job, ""},
		{"no job", "", job, ""},
		{"a dependant of its array", "10 1001 afterok:5_*(unfulfilled) after\n", task, "10"},
		{"a dependant of another task of its array", "10 1001 afterok:5_3(unfulfilled) after\n", task, "10"},
		{"a dependant of its number", "10 1001 afterok:9(unfulfilled) after\n", task, "10"},
		{"a task of its array that waits for the same", "5_2 1001 afterok:3(unfulfilled) sweep\n5_3 1001 afterok:3(unfulfilled) sweep\n", task, ""},
	} {
		if id, ok := parse.Dependant([]byte(c.line), c.job); id != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q %v, want %q", c.name, id, ok, c.want)
		}
	}
}

func TestForHowLongAnEndedJobIsRemembered(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"MinJobAge = 300 sec\n": 300, "MinJobAge = 0 sec\n": 0, "": -1, "MinJobAge = soon\n": -1} {
		if got := parse.Config([]byte(text)).Remembers(); int(got.Seconds()) != want && !(want < 0 && got < 0) {
			t.Errorf("%q: %v, want %d s", text, got, want)
		}
	}
}
