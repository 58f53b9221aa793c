package slurm_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pitchpipe/driver/slurm/command"
)

// isArray reports whether a call names an array.
func (f *fake) isArray(c command.Call) (int, bool) {
	n := 0
	if _, err := fmt.Sscan(c.Args[len(c.Args)-1], &n); err != nil || strings.Contains(c.Args[len(c.Args)-1], "_") {
		return 0, false
	}
	for _, j := range f.jobs {
		if j.array == n && n > 0 {
			return n, true
		}
	}
	return 0, false
}

// records is what scontrol prints of every job, or of an array: its tasks without a
// number share one record.
func (f *fake) records(array int) string {
	var b strings.Builder
	shared := map[int][]string{}
	for _, id := range slices.Sorted(maps.Keys(f.jobs)) {
		j := f.jobs[id]
		switch {
		case array > 0 && j.array != array:
		case j.array > 0 && !j.numbered:
			shared[j.array] = append(shared[j.array], fmt.Sprint(j.task))
		default:
			b.WriteString(f.record(j))
		}
	}
	for n, tasks := range shared {
		j := *f.named(fmt.Sprintf("%d_%s", n, tasks[0]))
		one := fmt.Sprintf("ArrayTaskId=%d ", j.task)
		b.WriteString(strings.Replace(f.record(&j), one, "ArrayTaskId="+strings.Join(tasks, ",")+" ", 1))
	}
	return b.String()
}

// number is what Slurm knows the job by.
func (j *fakeJob) number() int {
	if j.array > 0 && !j.numbered {
		return j.array
	}
	return j.id
}

// hangs tells of a signal to a task of whose array others wait: scancel goes on to
// send it.
func (f *fake) hangs(c command.Call) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.Name != "scancel" || !strings.Contains(c.String(), "--signal") {
		return false
	}
	to := f.job(c)
	if to == nil || to.array == 0 {
		return false
	}
	for _, j := range f.jobs {
		if j.array == to.array && !j.numbered {
			f.calls = append(f.calls, c.String())
			return true
		}
	}
	return false
}
