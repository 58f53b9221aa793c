package parse

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// MaxTasks is how many waiting tasks of one array are listed. The others follow when
// those before them have begun.
const MaxTasks = 1000

// Tasks reads the tasks of an array, as Slurm writes them (1,3,5-7,10-20:5%4), and returns
// the first of them, at most MaxTasks. Of a set that Slurm cut short (SLURM_BITSTR_LEN)
// it returns those that were printed whole.
func Tasks(s string) ([]int, error) {
	const field, maxTask = "ArrayTaskId", 4_000_001 // Slurm's own bound of MaxArraySize
	list, throttle, throttled := strings.Cut(s, "%")
	if n, err := count(field, throttle); throttled && (err != nil || n == 0) {
		return nil, badValue(field, s)
	}
	if whole, cut := strings.CutSuffix(list, "..."); cut {
		list = whole[:max(strings.LastIndexByte(whole, ','), 0)] // what stands behind it may go on
	}
	var out []int
	for part := range strings.SplitSeq(list, ",") {
		ends, step, stepped := strings.Cut(part, ":")
		first, last, ranged := strings.Cut(ends, "-")
		if !ranged {
			last = first
		}
		if !stepped {
			step = "1"
		}
		from, err := count(field, first)
		to, err2 := count(field, last)
		by, err3 := count(field, step)
		if errors.Join(err, err2, err3) != nil || to < from || to >= maxTask || by == 0 || stepped && !ranged {
			return nil, badValue(field, s)
		}
		for n := from; n <= to && len(out) < MaxTasks; n += by {
			out = append(out, n)
		}
	}
	return out, nil
}

// Unnumbered reports whether a task may have no number of its own yet: tasks that wait,
// or were cancelled together while they did, and which were not changed since
// share the record of their array. The last of them keeps the array's number.
func (j Job) Unnumbered() bool {
	return j.ArrayJob != "" && j.ID == j.ArrayJob && j.Node == "" && j.Restarts == 0
}

// EachTask returns the jobs that a record is about: itself, or the tasks of an
// array that it stands for, at most MaxTasks of them.
func (j Job) EachTask() []Job {
	if j.ArrayTask == "" || strings.Trim(j.ArrayTask, "0123456789") == "" {
		return []Job{j}
	}
	numbers, err := Tasks(j.ArrayTask)
	if err != nil { // not so by Jobs
		return []Job{j}
	}
	out := make([]Job, 0, len(numbers))
	for _, n := range numbers {
		out = append(out, j.Task(strconv.Itoa(n)))
	}
	return out
}

// Task returns the job of one task of those that a record stands for.
func (j Job) Task(n string) Job {
	if j.ArrayTask != n {
		j.ArrayTask = n
		j.StdOut, j.StdErr = ofTask(j.StdOut, j), ofTask(j.StdErr, j)
	}
	return j
}

// noTask is what Slurm puts into the names of files where a record stands for
// several tasks.
const noTask = "4294967294"

func ofTask(path string, j Job) string {
	return padded(strings.ReplaceAll(path, noTask, j.ArrayTask), j)
}

// padded fills in what scontrol leaves of the names of files: numbers with a width.
func padded(path string, j Job) string {
	if j.ArrayJob == "" || !strings.Contains(path, "%") {
		return path
	}
	values := map[string]string{"A": j.ArrayJob, "a": j.ArrayTask, "j": j.ID}
	return regexp.MustCompile(`%\d{1,2}[Aaj]`).ReplaceAllStringFunc(path, func(s string) string {
		end := len(s) - 1
		v := values[s[end:]]
		width, _ := strconv.Atoi(s[1:end])
		if strings.Trim(v, "0123456789") != "" {
			return s
		}
		return strings.Repeat("0", max(0, min(width, 10)-len(v))) + v
	})
}
