package parse

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxTasks is how many waiting tasks of one array are listed. The others follow when
// those before them have begun.
const MaxTasks = 1000

// maxTask is above every number of a task: Slurm's own bound of MaxArraySize.
const maxTask = 4_000_001

// TaskSet are the tasks of an array, as Slurm and sbatch --array write them:
// 1,3,5-7,10-20:5%4.
type TaskSet struct {
	Ranges   []TaskRange
	Throttle int  // how many of them may run at a time; 0 = all
	Cut      bool // Slurm printed no more of them
}

// TaskRange are the tasks First, First+Step, … up to Last.
type TaskRange struct {
	First, Last, Step int
}

// Tasks reads a set. One that Slurm cut short (SLURM_BITSTR_LEN) has the tasks that
// were printed whole.
func Tasks(field, s string) (TaskSet, error) {
	var out TaskSet
	list, throttle, throttled := strings.Cut(s, "%")
	if throttled {
		n, err := count(field, throttle)
		if err != nil || n == 0 {
			return TaskSet{}, badValue(field, s)
		}
		out.Throttle = n
	}
	if list, out.Cut = strings.CutSuffix(list, "..."); out.Cut {
		whole := strings.LastIndexByte(list, ',') // what stands behind it may go on
		if whole <= 0 {
			return TaskSet{}, badValue(field, s)
		}
		list = list[:whole]
	}
	for part := range strings.SplitSeq(list, ",") {
		r, err := taskRange(field, part)
		if err != nil {
			return TaskSet{}, err
		}
		out.Ranges = append(out.Ranges, r)
	}
	return out, nil
}

func taskRange(field, s string) (TaskRange, error) {
	ends, step, stepped := strings.Cut(s, ":")
	first, last, ranged := strings.Cut(ends, "-")
	r := TaskRange{Step: 1}
	var err error
	if r.First, err = task(field, first); err != nil {
		return r, err
	}
	r.Last = r.First
	if ranged {
		if r.Last, err = task(field, last); err != nil {
			return r, err
		}
	}
	if stepped {
		if r.Step, err = task(field, step); err != nil {
			return r, err
		}
	}
	if r.Last < r.First || r.Step == 0 || stepped && !ranged {
		return r, badValue(field, s)
	}
	return r, nil
}

func task(field, s string) (int, error) {
	n, err := count(field, s)
	if err != nil || n >= maxTask || len(s) > 1 && s[0] == '0' {
		return 0, badValue(field, s)
	}
	return n, nil
}

// String writes the set as it is read.
func (t TaskSet) String() string {
	var b strings.Builder
	for i, r := range t.Ranges {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(r.First))
		if r.Last > r.First || r.Step > 1 {
			fmt.Fprintf(&b, "-%d", r.Last)
		}
		if r.Step > 1 {
			fmt.Fprintf(&b, ":%d", r.Step)
		}
	}
	if t.Cut {
		b.WriteString(",...")
	}
	if t.Throttle > 0 {
		fmt.Fprintf(&b, "%%%d", t.Throttle)
	}
	return b.String()
}

// First returns the numbers of the first tasks, at most so many, in the order in
// which they are written.
func (t TaskSet) First(most int) []int {
	var out []int
	for _, r := range t.Ranges {
		for n := r.First; n <= r.Last; n += r.Step {
			if len(out) >= most {
				return out
			}
			out = append(out, n)
		}
	}
	return out
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
	set, err := Tasks("ArrayTaskId", j.ArrayTask)
	if err != nil { // not so by Jobs
		return []Job{j}
	}
	out := make([]Job, 0, len(set.Ranges))
	for _, n := range set.First(MaxTasks) {
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
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(path, "%")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		end := strings.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' })
		values := map[string]string{"A": j.ArrayJob, "a": j.ArrayTask, "j": j.ID}
		if end >= 1 && end <= 2 {
			if v, known := values[after[end:end+1]]; known && strings.Trim(v, "0123456789") == "" {
				width, _ := strconv.Atoi(after[:end])
				b.WriteString(strings.Repeat("0", max(0, min(width, 10)-len(v))) + v)
				path = after[end+1:]
				continue
			}
		}
		b.WriteByte('%')
		path = after
	}
}
